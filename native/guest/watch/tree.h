/*
 * watch_tree: the directories one WATCH looks at, as the tree of their names, found by inotify's numbers.
 *
 * A directory is scanned once after its watch is set, so what was made in it before is found by the scan and what is made
 * later by inotify. Scans go in small steps; `pending` is the list of directories that wait for theirs.
 */
#ifndef ISLET_WATCH_TREE_H
#define ISLET_WATCH_TREE_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "watch/ignore.h"
#include "watch/names.h"

struct watch_node {
  int wd; /* -1: none */
  bool report;  /* its content is new and is to be reported */
  bool pending;
  bool stale;   /* a name was taken away while it is being scanned: what the scan says may be gone */
  struct watch_names names;
  struct watch_node *parent, *child, *next, *back; /* siblings form a list; back is the left one */
  struct watch_node *next_by_wd, *next_pending, *back_pending;
  char name[]; /* the root's is the whole path */
};

struct watch_tree {
  int inotify;
  bool recursive;
  const struct watch_ignore *ignore;
  struct watch_node *root;
  dev_t root_device; /* and inode: what was at the root's path */
  ino_t root_inode;
  struct watch_node **by_wd;
  size_t bucket_count, node_count, name_count;
  struct watch_node *pending, *last_pending;
  struct watch_node *scanning; /* whose directory `dir` is */
  DIR *dir;
};

/* What a scan finds in a directory that is to be reported. */
typedef void (*watch_found)(void *arg, const char *path, bool directory);

/* Adds the root and plans its scan. 0 or an errno. `ignore` must outlive the tree. */
int watch_tree_start(struct watch_tree *tree, const char *path, bool recursive, const struct watch_ignore *ignore);
/* Plans to watch and scan a directory; 0 or an errno (no memory, too many). */
int watch_tree_add(struct watch_tree *tree, struct watch_node *parent, const char *name, bool report);
/* One small step of scanning; 1: there is more, 0: all is scanned, else a negative errno. */
int watch_tree_step(struct watch_tree *tree, watch_found found, void *arg);
/* Remembers that a directory has this name; true: it had it before. Past a million names none is remembered. */
bool watch_tree_know(struct watch_tree *tree, struct watch_node *node, const char *name);
void watch_tree_forget(struct watch_tree *tree, struct watch_node *node, const char *name);
struct watch_node *watch_tree_find(struct watch_tree *tree, int wd);
struct watch_node *watch_tree_child(struct watch_node *parent, const char *name);
/* Forgets a directory and all below it, and their watches. */
void watch_tree_remove(struct watch_tree *tree, struct watch_node *node);
/* Whether what is at the root's path still is what is watched. */
bool watch_tree_root_stays(const struct watch_tree *tree);
/* False when the path is too long. name may be NULL. */
bool watch_tree_path(const struct watch_node *node, const char *name, char path[PATH_MAX]);
void watch_tree_free(struct watch_tree *tree);

#endif
