/*
 * replace: replaces what is at a path with a new file, atomically.
 *
 * The bytes go to a hidden file in the same directory; commit renames it over the path, cancel removes it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file/path.h"

enum { REPLACE_SAME_MODE = UINT32_MAX };
enum { REPLACE_PAGE = 4096 };

struct replace_want {
  const char *path;
  uint32_t mode;                 /* REPLACE_SAME_MODE: the mode of the replaced file, else 0644 */
  const struct user_ids *owner;  /* NULL: the owner of the replaced file, else new_owner */
  const struct user_ids *new_owner; /* of new files and directories; NULL: the guest */
  bool parents;                  /* make missing parent directories */
  bool exclusive;                /* fail if the path exists */
  bool any;                      /* replace a fifo, socket or device too */
  bool follow;                   /* replace the target of a symlink, not the symlink */
};

struct replace {
  int dir, fd; /* -1 when not open */
  char temp[PATH_TEMP_SIZE];
  char name[256];
  uint32_t mode;
  bool exclusive;
  size_t tail_length;
  uint8_t tail[REPLACE_PAGE]; /* bytes that do not fill a page yet */
};

/* All return 0 or an errno; *stage names the step. A failure leaves nothing behind. */
int replace_begin(struct replace *replace, const struct replace_want *want, const char **stage);
int replace_write(struct replace *replace, const void *bytes, size_t length, const char **stage);
int replace_commit(struct replace *replace, const char **stage);
/* May be called at any time, also twice. */
void replace_cancel(struct replace *replace);
