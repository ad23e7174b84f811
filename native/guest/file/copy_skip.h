/* copy_skip: the paths below a directory that a COPY leaves out, with everything in them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct wire_field;
struct wire_frame;

struct copy_skip {
  struct wire_field *paths; /* sorted; they point into the request */
  size_t count;
};

/* Reads the list of a COPY. False: the list is bad and ERROR has been sent. */
bool copy_skip_read(struct copy_skip *skip, const struct wire_frame *req);
bool copy_skips(const struct copy_skip *skip, const char *path);
void copy_skip_free(struct copy_skip *skip);
