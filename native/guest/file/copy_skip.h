/* copy_skip: what a COPY of a directory leaves out: paths below it, each with all that is in it. */
#ifndef ISLET_COPY_SKIP_H
#define ISLET_COPY_SKIP_H

#include <stdbool.h>
#include <stddef.h>

struct wire_field;
struct wire_frame;

struct copy_skip {
  struct wire_field *paths; /* sorted; they point into the request */
  size_t count;
};

/* Reads the list of a COPY. False: it is bad, and ERROR has been sent. */
bool copy_skip_read(struct copy_skip *skip, const struct wire_frame *req);
bool copy_skips(const struct copy_skip *skip, const char *path);
void copy_skip_free(struct copy_skip *skip);

#endif
