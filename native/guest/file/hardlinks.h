/* hardlinks: remembers the first path of each file that has several names. */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

struct hardlink;

struct hardlinks {
  struct hardlink **buckets;
  size_t count;
};

/* The first path; NULL if the file is new or has one name only. */
const char *hardlinks_find(const struct hardlinks *links, const struct stat *st);
/* Does nothing at its bound or without memory: the next name is then treated as a separate file. */
void hardlinks_add(struct hardlinks *links, const struct stat *st, const char *path);
void hardlinks_free(struct hardlinks *links);
