/*
 * replace: puts a new file in place of whatever is at a path, at once.
 *
 * The bytes go to a hidden file in the same directory; commit renames it over the path, cancel removes it.
 */
#ifndef ISLET_REPLACE_H
#define ISLET_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file/path.h"

enum { REPLACE_SAME_MODE = UINT32_MAX };
enum { REPLACE_PAGE = 4096 };

struct replace_want {
  const char *path;
  uint32_t mode;                 /* REPLACE_SAME_MODE: that of the file replaced, else 0644 */
  const struct user_ids *owner;  /* NULL: that of the file replaced, else new_owner */
  const struct user_ids *new_owner; /* of what was not there before, directories too; NULL: the guest */
  bool parents;                  /* make missing directories */
  bool exclusive;                /* fail when there is something */
  bool any;                      /* replace a fifo, socket or device too */
  bool follow;                   /* replace what a symlink at the path leads to, not the symlink */
};

struct replace {
  int dir, fd; /* -1 when not open */
  char temp[PATH_TEMP_SIZE];
  char name[256];
  uint32_t mode;
  bool exclusive;
  size_t tail_length;
  uint8_t tail[REPLACE_PAGE]; /* the last bytes, while they are less than a page */
};

/* All return 0 or an errno, with *stage naming the step. After a failure nothing is left behind. */
int replace_begin(struct replace *replace, const struct replace_want *want, const char **stage);
int replace_write(struct replace *replace, const void *bytes, size_t length, const char **stage);
int replace_commit(struct replace *replace, const char **stage);
/* Fine to call at any time, also twice. */
void replace_cancel(struct replace *replace);

#endif
