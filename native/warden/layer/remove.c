#include "layer/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

static DIR *list_of(int at, const char *name) {
  return io_take_dir(openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/* Moves from/name up into top, under a free name. */
static int lift(int from, const char *name, int top, unsigned *count) {
  for (;;) {
    char lifted[32];
    snprintf(lifted, sizeof lifted, ".rm-%u", (*count)++);
    if (renameat2(from, name, top, lifted, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EEXIST) return -1;
  }
}

/* Removes the files in top/name, moves its directories up into top, then removes it. */
static int remove_level(int top, const char *name, unsigned *count) {
  AUTO_CLOSE_DIR DIR *list = list_of(top, name);
  if (list == NULL) return -1;
  struct dirent *entry;
  while ((entry = io_next_entry(list)) != NULL) {
    if (unlinkat(dirfd(list), entry->d_name, 0) == 0 || errno == ENOENT) continue;
    if (errno != EISDIR && errno != EPERM) return -1;
    if (unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR) == 0) continue;
    if (errno != ENOTEMPTY && errno != EEXIST) return -1;
    if (lift(dirfd(list), entry->d_name, top, count) < 0) return -1;
  }
  if (errno != 0) return -1;
  /* Moving may make readdir skip an entry; then the directory is not empty and the next round handles it. */
  return unlinkat(top, name, AT_REMOVEDIR) == 0 || errno == ENOTEMPTY ? 0 : -1;
}

int remove_contents(int dir) {
  unsigned count = 0;
  for (bool found = true; found;) {
    found = false;
    AUTO_CLOSE_DIR DIR *list = list_of(dir, ".");
    if (list == NULL) return -1;
    struct dirent *entry;
    while ((entry = io_next_entry(list)) != NULL) {
      found = true;
      if (unlinkat(dir, entry->d_name, 0) == 0 || errno == ENOENT) continue;
      if (errno != EISDIR && errno != EPERM) return -1;
      if (remove_level(dir, entry->d_name, &count) < 0 && errno != ENOENT) return -1;
    }
  }
  return 0;
}

int remove_tree(int parent, const char *name) {
  AUTO_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? 0 : errno == ENOTDIR || errno == ELOOP ? unlinkat(parent, name, 0) : -1;
  if (remove_contents(fd) < 0) return -1;
  return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1;
}
