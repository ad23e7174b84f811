#include "remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void close_dir(DIR **dir) {
  int err = errno;
  if (*dir != NULL) closedir(*dir);
  errno = err;
}

static DIR *list_of(int at, const char *name) {
  int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *list = fd < 0 ? NULL : fdopendir(fd);
  if (list == NULL && fd >= 0) close(fd);
  return list;
}

static bool is_dots(const char *name) {
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Lifts from/name up into top, under a name that is free there. */
static int lift(int from, const char *name, int top, unsigned *count) {
  for (;;) {
    char lifted[32];
    snprintf(lifted, sizeof lifted, ".rm-%u", (*count)++);
    if (renameat2(from, name, top, lifted, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EEXIST) return -1;
  }
}

/* Empties top/name of files, lifts its directories into top, removes it. */
static int remove_level(int top, const char *name, unsigned *count) {
  __attribute__((cleanup(close_dir))) DIR *list = list_of(top, name);
  if (list == NULL) return -1;
  struct dirent *entry;
  for (errno = 0; (entry = readdir(list)) != NULL; errno = 0) {
    if (is_dots(entry->d_name)) continue;
    if (unlinkat(dirfd(list), entry->d_name, 0) == 0 || errno == ENOENT) continue;
    if (errno != EISDIR && errno != EPERM) return -1;
    if (unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR) == 0) continue;
    if (errno != ENOTEMPTY && errno != EEXIST) return -1;
    if (lift(dirfd(list), entry->d_name, top, count) < 0) return -1;
  }
  if (errno != 0) return -1;
  /* Lifting may make readdir skip an entry; then it is not empty yet and the next round sees it again. */
  return unlinkat(top, name, AT_REMOVEDIR) == 0 || errno == ENOTEMPTY ? 0 : -1;
}

int remove_contents(int dir) {
  unsigned count = 0;
  for (bool found = true; found;) {
    found = false;
    __attribute__((cleanup(close_dir))) DIR *list = list_of(dir, ".");
    if (list == NULL) return -1;
    struct dirent *entry;
    while ((entry = readdir(list)) != NULL) {
      if (is_dots(entry->d_name)) continue;
      found = true;
      if (unlinkat(dir, entry->d_name, 0) == 0 || errno == ENOENT) continue;
      if (errno != EISDIR && errno != EPERM) return -1;
      if (remove_level(dir, entry->d_name, &count) < 0 && errno != ENOENT) return -1;
    }
  }
  return 0;
}

int remove_tree(int parent, const char *name) {
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? 0 : errno == ENOTDIR || errno == ELOOP ? unlinkat(parent, name, 0) : -1;
  int result = remove_contents(fd);
  close(fd);
  if (result < 0) return -1;
  return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1;
}
