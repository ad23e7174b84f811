/* tar_entry: reads the headers of an archive, extensions resolved, from the worker's input. */
#ifndef ISLET_TAR_ENTRY_H
#define ISLET_TAR_ENTRY_H

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
  uint64_t size; /* bytes of content that follow, padded to a block; the caller reads or skips them */
  uint64_t mtime;
  unsigned major, minor;
};

/* False at the end of the archive, with *bad NULL, or on bytes that are no archive, with *bad saying why. */
bool tar_entry_next(struct tar_entry *entry, const char **bad);
/* Reads `bytes` and drops them; what is missing at the end of the input does not matter. */
void tar_entry_skip(uint64_t bytes);

#endif
