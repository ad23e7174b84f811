/* tree: whole directory trees, for workers. What fails is kept as the first errno and its path. */
#ifndef ISLET_TREE_H
#define ISLET_TREE_H

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

/* Removes what is at the path, whole directories included, and never follows a symlink. */
void tree_remove(const char *path, struct tree_failure *failure);
/* Gives what was made the owner, mode and times in `st`; fd is open, or -1 for what `name` in `dir` is, not followed. */
int tree_restore(int fd, int dir, const char *name, const struct stat *st);

#endif
