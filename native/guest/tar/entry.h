/* tar_entry: reads the headers of an archive from the worker's input and applies their extensions. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tar_entry {
  char name[PATH_MAX];
  char target[PATH_MAX]; /* of a link */
  char type;
  mode_t mode;
  uid_t uid;
  gid_t gid;
  uint64_t size; /* of the content that follows, padded to a block; the caller reads or skips it */
  uint64_t mtime;
  unsigned major, minor;
};

/* False at the end of the archive (*bad is NULL), or for bytes that are not an archive (*bad says why). */
bool tar_entry_next(struct tar_entry *entry, const char **bad);
/* Reads and discards `bytes` bytes; the input may end before. */
void tar_entry_skip(uint64_t bytes);
