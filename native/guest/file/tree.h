/* tree: what the workers for whole directory trees share. A failure is the first errno and its path. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>


struct tree_failure {
  int err; /* 0: nothing failed */
  const char *stage;
  char path[PATH_MAX];
};

/* Keeps the first failure only. */
void tree_fail(struct tree_failure *failure, int err, const char *stage, const char *path);

/* Removes a file or a whole directory; never follows a symlink. */
void tree_remove(const char *path, struct tree_failure *failure);
/* Sets owner, mode and times from `st` on an open fd, or, if fd is -1, on `name` in `dir` without following it. */
int tree_restore(int fd, int dir, const char *name, const struct stat *st);
