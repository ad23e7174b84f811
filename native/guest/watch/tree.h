/*
 * watch_tree: the directories of one WATCH, as a tree of names, indexed by inotify's watch descriptors (wd).
 *
 * A directory is scanned once after its watch is set: the scan finds earlier entries, inotify reports later ones. Scans run
 * in small steps; `pending` lists the directories that are not scanned yet.
 */
#pragma once

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "watch/ignore.h"
#include "watch/names.h"

struct watch_node {
  int wd; /* -1: none */
  bool report;  /* report its entries as created */
  bool pending;
  bool stale;   /* an entry was removed during the scan: check that each entry still exists */
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
  dev_t root_device; /* device and inode of the root when its watch was set */
  ino_t root_inode;
  struct watch_node **by_wd;
  size_t bucket_count, node_count, name_count;
  struct watch_node *pending, *last_pending;
  struct watch_node *scanning; /* whose directory `dir` is */
  DIR *dir;
};

/* Called for every entry that a scan finds in a directory with `report` set. */
typedef void (*watch_found)(void *arg, const char *path, bool directory);

/* Adds the root and queues its scan. 0 or an errno. `ignore` must outlive the tree. */
int watch_tree_start(struct watch_tree *tree, const char *path, bool recursive, const struct watch_ignore *ignore);
/* Queues watching and scanning a directory; 0 or an errno (no memory, too many). */
int watch_tree_add(struct watch_tree *tree, struct watch_node *parent, const char *name, bool report);
/* One small step of scanning; 1: more to do, 0: done, else a negative errno. */
int watch_tree_step(struct watch_tree *tree, watch_found found, void *arg);
/* Remembers a name in a directory; true if it was known. Beyond a million names nothing is remembered. */
bool watch_tree_know(struct watch_tree *tree, struct watch_node *node, const char *name);
void watch_tree_forget(struct watch_tree *tree, struct watch_node *node, const char *name);
struct watch_node *watch_tree_find(struct watch_tree *tree, int wd);
struct watch_node *watch_tree_child(struct watch_node *parent, const char *name);
/* Removes a directory and everything below it, with their watches. */
void watch_tree_remove(struct watch_tree *tree, struct watch_node *node);
/* Whether the root's path still leads to the watched file. */
bool watch_tree_root_stays(const struct watch_tree *tree);
/* False when the path is too long. name may be NULL. */
bool watch_tree_path(const struct watch_node *node, const char *name, char path[PATH_MAX]);
void watch_tree_free(struct watch_tree *tree);
