#include "watch/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/path.h"
#include "io.h"

enum {
  WATCH_TREE_MAX_NODES = 1 << 20,
  WATCH_TREE_MAX_NAMES = 1 << 20,
  WATCH_TREE_STEP = 256, /* directory entries, or watches set, per step */
  WATCH_TREE_MASK = IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |
                    IN_MOVE_SELF | IN_EXCL_UNLINK,
};

static int open_pending(struct watch_tree *tree);
static bool set_wd(struct watch_tree *tree, struct watch_node *node, int wd);

int watch_tree_start(struct watch_tree *tree, const char *path, bool recursive, const struct watch_ignore *ignore) {
  *tree = (struct watch_tree){.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .recursive = recursive, .ignore = ignore};
  if (tree->inotify < 0) return errno;
  int err = watch_tree_add(tree, NULL, path, false);
  if (err != 0) watch_tree_free(tree);
  return err;
}

int watch_tree_add(struct watch_tree *tree, struct watch_node *parent, const char *name, bool report) {
  if (tree->node_count >= WATCH_TREE_MAX_NODES) return ENOSPC;
  struct watch_node *node = calloc(1, sizeof *node + strlen(name) + 1);
  if (node == NULL) return ENOMEM;
  strcpy(node->name, name);
  node->wd = -1;
  node->report = report;
  node->pending = true;
  node->parent = parent;
  if (parent == NULL) {
    tree->root = node;
  } else {
    node->next = parent->child;
    if (node->next != NULL) node->next->back = node;
    parent->child = node;
  }
  node->back_pending = tree->last_pending;
  if (tree->last_pending != NULL) tree->last_pending->next_pending = node;
  else tree->pending = node;
  tree->last_pending = node;
  tree->node_count++;
  return 0;
}

int watch_tree_step(struct watch_tree *tree, watch_found found, void *arg) {
  for (int i = 0; i < WATCH_TREE_STEP; i++) {
    if (tree->dir == NULL) {
      if (tree->pending == NULL) return 0;
      int err = open_pending(tree);
      if (err != 0) return -err;
      i += 15; /* setting a watch costs about as much as this many entries */
      continue;
    }
    struct dirent *entry = io_next_entry(tree->dir);
    if (entry == NULL) {
      closedir(tree->dir);
      tree->dir = NULL;
      tree->scanning->stale = false;
      tree->scanning = NULL;
      continue;
    }
    const char *name = entry->d_name;
    if (watch_ignored(tree->ignore, name)) continue;
    struct stat st;
    bool directory = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN)
      directory = fstatat(dirfd(tree->dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
    if (!directory && path_is_temp(name)) continue;
    struct watch_node *node = tree->scanning;
    if (node->stale && fstatat(dirfd(tree->dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0) continue;
    watch_tree_know(tree, node, name);
    char path[PATH_MAX];
    if (node->report && watch_tree_path(node, name, path)) found(arg, path, directory);
    int err = directory && tree->recursive ? watch_tree_add(tree, node, name, node->report) : 0;
    if (err != 0) return -err;
  }
  return 1;
}

bool watch_tree_know(struct watch_tree *tree, struct watch_node *node, const char *name) {
  if (watch_names_has(&node->names, name)) return true;
  if (tree->name_count < WATCH_TREE_MAX_NAMES && watch_names_add(&node->names, name)) tree->name_count++;
  return false;
}

void watch_tree_forget(struct watch_tree *tree, struct watch_node *node, const char *name) {
  if (watch_names_remove(&node->names, name)) tree->name_count--;
  if (tree->scanning == node) node->stale = true;
}

static void drop_pending(struct watch_tree *tree, struct watch_node *node) {
  if (!node->pending) return;
  node->pending = false;
  if (node->back_pending != NULL) node->back_pending->next_pending = node->next_pending;
  else tree->pending = node->next_pending;
  if (node->next_pending != NULL) node->next_pending->back_pending = node->back_pending;
  else tree->last_pending = node->back_pending;
}

/* Sets the watch of the next pending directory and opens it for the scan. Drops a directory that is gone. */
static int open_pending(struct watch_tree *tree) {
  struct watch_node *node = tree->pending;
  drop_pending(tree, node);
  char path[PATH_MAX];
  bool root = node == tree->root;
  uint32_t mask = WATCH_TREE_MASK | (root ? 0 : IN_ONLYDIR | IN_DONT_FOLLOW);
  int wd = watch_tree_path(node, NULL, path) ? inotify_add_watch(tree->inotify, path, mask) : -1;
  if (wd < 0) {
    int err = errno;
    if (root || err == ENOSPC || err == ENOMEM) return err;
    watch_tree_remove(tree, node);
    return 0;
  }
  struct watch_node *known = watch_tree_find(tree, wd);
  if (known != NULL && known->parent == node->parent && strcmp(known->name, node->name) == 0) {
    /* inotify and a scan both found it. */
    watch_tree_remove(tree, node);
    return 0;
  }
  /* It was renamed, and the event for its old name has not arrived yet: the watch moves to the new name. */
  if (!set_wd(tree, node, wd)) return ENOMEM;
  struct stat st;
  if (root && stat(path, &st) == 0) {
    tree->root_device = st.st_dev;
    tree->root_inode = st.st_ino;
  }
  tree->dir = io_take_dir(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (root ? 0 : O_NOFOLLOW)));
  if (tree->dir != NULL) tree->scanning = node; /* else the root is a file, or the directory cannot be listed */
  return 0;
}

static bool grow(struct watch_tree *tree) {
  if (tree->node_count <= tree->bucket_count) return true;
  size_t count = tree->bucket_count == 0 ? 16 : tree->bucket_count * 2;
  struct watch_node **by_wd = calloc(count, sizeof(struct watch_node *));
  if (by_wd == NULL) return tree->bucket_count > 0; /* fuller buckets are only slower */
  for (size_t i = 0; i < tree->bucket_count; i++) {
    while (tree->by_wd[i] != NULL) {
      struct watch_node *node = tree->by_wd[i];
      tree->by_wd[i] = node->next_by_wd;
      node->next_by_wd = by_wd[(size_t)node->wd % count];
      by_wd[(size_t)node->wd % count] = node;
    }
  }
  free(tree->by_wd);
  tree->by_wd = by_wd;
  tree->bucket_count = count;
  return true;
}

static void drop_wd(struct watch_tree *tree, struct watch_node *node) {
  if (node->wd < 0) return;
  struct watch_node **at = &tree->by_wd[(size_t)node->wd % tree->bucket_count];
  while (*at != node) at = &(*at)->next_by_wd;
  *at = node->next_by_wd;
  node->wd = -1;
}

static bool set_wd(struct watch_tree *tree, struct watch_node *node, int wd) {
  struct watch_node *known = watch_tree_find(tree, wd);
  if (known != NULL) drop_wd(tree, known);
  if (!grow(tree)) return false;
  node->wd = wd;
  node->next_by_wd = tree->by_wd[(size_t)wd % tree->bucket_count];
  tree->by_wd[(size_t)wd % tree->bucket_count] = node;
  return true;
}

struct watch_node *watch_tree_find(struct watch_tree *tree, int wd) {
  if (tree->bucket_count == 0 || wd < 0) return NULL;
  struct watch_node *node = tree->by_wd[(size_t)wd % tree->bucket_count];
  while (node != NULL && node->wd != wd) node = node->next_by_wd;
  return node;
}

struct watch_node *watch_tree_child(struct watch_node *parent, const char *name) {
  struct watch_node *node = parent->child;
  while (node != NULL && strcmp(node->name, name) != 0) node = node->next;
  return node;
}

static void free_node(struct watch_tree *tree, struct watch_node *node) {
  drop_pending(tree, node);
  if (tree->scanning == node) {
    closedir(tree->dir);
    tree->dir = NULL;
    tree->scanning = NULL;
  }
  if (node->wd >= 0) {
    inotify_rm_watch(tree->inotify, node->wd);
    drop_wd(tree, node);
  }
  if (node->back != NULL) node->back->next = node->next;
  else if (node->parent != NULL) node->parent->child = node->next;
  if (node->next != NULL) node->next->back = node->back;
  if (tree->root == node) tree->root = NULL;
  tree->node_count--;
  tree->name_count -= node->names.count;
  watch_names_free(&node->names);
  free(node);
}

/* Children first, without recursion: a tree may be deep. */
void watch_tree_remove(struct watch_tree *tree, struct watch_node *node) {
  struct watch_node *at = node;
  for (;;) {
    while (at->child != NULL) at = at->child;
    struct watch_node *parent = at->parent;
    bool last = at == node;
    free_node(tree, at);
    if (last) return;
    at = parent;
  }
}

bool watch_tree_root_stays(const struct watch_tree *tree) {
  char path[PATH_MAX];
  struct stat st;
  return watch_tree_path(tree->root, NULL, path) && stat(path, &st) == 0 && st.st_dev == tree->root_device &&
         st.st_ino == tree->root_inode;
}

bool watch_tree_path(const struct watch_node *node, const char *name, char path[PATH_MAX]) {
  size_t at = PATH_MAX - 1;
  path[at] = 0;
  if (name != NULL) {
    size_t length = strlen(name);
    if (length + 1 > at) goto too_long;
    at -= length;
    memcpy(path + at, name, length);
    if (!(node->parent == NULL && strcmp(node->name, "/") == 0)) path[--at] = '/';
  }
  for (; node != NULL; node = node->parent) {
    size_t length = strlen(node->name);
    if (length + 1 > at) goto too_long;
    at -= length;
    memcpy(path + at, node->name, length);
    bool below_slash = node->parent != NULL && node->parent->parent == NULL && strcmp(node->parent->name, "/") == 0;
    if (node->parent != NULL && !below_slash) path[--at] = '/';
  }
  memmove(path, path + at, PATH_MAX - at);
  return true;
too_long:
  errno = ENAMETOOLONG;
  return false;
}

void watch_tree_free(struct watch_tree *tree) {
  if (tree->inotify >= 0) close(tree->inotify); /* all its watches at once */
  tree->inotify = -1;
  if (tree->root != NULL) watch_tree_remove(tree, tree->root);
  free(tree->by_wd);
  tree->by_wd = NULL;
  tree->bucket_count = 0;
}
