/* hardlinks: remembers under which path a file with several names was met first. */
#ifndef ISLET_HARDLINKS_H
#define ISLET_HARDLINKS_H

#include <stddef.h>
#include <sys/stat.h>

struct hardlink;

struct hardlinks {
  struct hardlink **buckets;
  size_t count;
};

/* NULL when it is new, or has one name only. */
const char *hardlinks_find(const struct hardlinks *links, const struct stat *st);
/* Past the bound, or without memory, it forgets: the file is then taken as one of its own. */
void hardlinks_add(struct hardlinks *links, const struct stat *st, const char *path);
void hardlinks_free(struct hardlinks *links);

#endif
