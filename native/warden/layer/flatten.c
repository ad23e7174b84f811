/*
 * Merges several layers into one new layer that shows the same files over any layers below. Directories are followed
 * downwards exactly as overlay does (fs/overlayfs/namei.c):
 *
 *   top     d/  redirect=/a     d of the result contains d of top and a of middle.
 *   middle  a/                  The layers below continue it as /a, so d gets redirect=/a;
 *   (below  a/)                 or opaque if one of the parts is opaque; or nothing if the name below is the same.
 *
 * An entry that cannot be read is a failure, never treated as missing: the source layers may be deleted afterwards.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "layer/copy.h"
#include "layer/layer.h"
#include "paths.h"

enum { MAX_REDIRECT = 4096 };
static const char OPAQUE[] = "trusted.overlay.opaque", REDIRECT[] = "trusted.overlay.redirect";

struct part {
  unsigned layer;
  struct handle handle;
};

/* One directory of the result and its source directories, top first. A hostile tree may queue millions of them, so each
 * allocation is as small as possible. */
struct merge {
  struct handle to;
  const char *below; /* its path in the layers below all of ours; "" if it is hidden from them */
  unsigned parts;
  struct part part[];
};

/* A merge while its parts are being collected. */
struct draft {
  struct handle to;
  char below[MAX_REDIRECT];
  unsigned parts;
  struct part part[MAX_LOWERS];
};

static struct merge *merge_of(const struct draft *draft) {
  size_t parts = draft->parts * sizeof(struct part), below = strlen(draft->below) + 1;
  struct merge *merge = malloc(sizeof *merge + parts + below);
  if (merge == NULL) return NULL;
  char *text = (char *)(merge + 1) + parts;
  merge->to = draft->to;
  merge->parts = draft->parts;
  memcpy(merge->part, draft->part, parts);
  merge->below = memcpy(text, draft->below, below);
  return merge;
}

struct flatten {
  int root[MAX_LOWERS]; /* the tree in every layer that has it */
  unsigned roots;
  struct copier copier;
  struct stack todo; /* of struct merge * */
};

/* The state of following a directory from layer to layer. */
struct trail {
  char path[MAX_REDIRECT]; /* a name in the parent, or absolute after a redirect */
  bool stopped;
};

static bool is_whiteout(const struct stat *stat) {
  return S_ISCHR(stat->st_mode) && stat->st_rdev == 0;
}

static int open_child(int dir, const char *name) {
  return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* a + b + c into out; -1 when it does not fit. */
static int join(char out[MAX_REDIRECT], const char *a, const char *b, const char *c) {
  size_t la = strlen(a), lb = strlen(b), lc = strlen(c);
  if (la + lb + lc >= MAX_REDIRECT) return errno = ENAMETOOLONG, -1;
  memmove(out, a, la);
  memcpy(out + la, b, lb);
  memcpy(out + la + lb, c, lc + 1);
  return 0;
}

/* Reads a directory's opaque and redirect marks. `done` and `rest` are the path before and after it, for a redirect of a
 * directory in the middle of the path. */
static int read_marks(struct trail *trail, int dir, const char *done, const char *rest) {
  char value[MAX_REDIRECT];
  ssize_t length = fgetxattr(dir, OPAQUE, value, sizeof value);
  if (length == 1 && value[0] == 'y') {
    trail->stopped = true; /* opaque wins over a redirect */
    return 0;
  }
  length = fgetxattr(dir, REDIRECT, value, sizeof value - 1);
  if (length < 0) return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -1;
  if (length == 0) return 0;
  value[length] = 0;
  /* An absolute redirect: the directory was moved here, so an opaque parent does not hide its parts below. */
  if (value[0] == '/') trail->stopped = false;
  return join(trail->path, value[0] == '/' ? "" : done, value, rest);
}

/* 1 if `dir` has this name, 0 if not, -1 with errno. */
static int look_up(int dir, const char *name, struct stat *stat) {
  if (fstatat(dir, name, stat, AT_SYMLINK_NOFOLLOW) == 0) return 1;
  return errno == ENOENT || errno == ENAMETOOLONG ? 0 : -1;
}

/* One step of follow: *next is the directory `name` in `at`, or -1 if there is none. */
static int step(struct trail *trail, int at, const char *name, int *next) {
  struct stat stat;
  *next = -1;
  if (name[0] == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return 0;
  int found = look_up(at, name, &stat);
  if (found <= 0) return found;
  if (S_ISDIR(stat.st_mode)) return (*next = open_child(at, name)) < 0 ? -1 : 0;
  trail->stopped = true; /* a whiteout or a file hides what is below */
  return 0;
}

/* *found is the directory at trail->path below `dir`, or -1 if this layer has none. */
static int follow(struct trail *trail, int dir, int *found) {
  char path[MAX_REDIRECT], done[MAX_REDIRECT], rest[MAX_REDIRECT];
  strcpy(path, trail->path);
  AUTO_CLOSE int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);
  char *name = path[0] == '/' ? path + 1 : path;
  *found = -1;
  if (at < 0) return -1;
  for (;;) {
    char *slash = strchrnul(name, '/');
    bool last = *slash == 0;
    /* A redirect on the way changes the part of trail->path before `name`, never the part after it. */
    size_t before = strlen(trail->path) - strlen(name);
    memcpy(done, trail->path, before);
    done[before] = 0;
    strcpy(rest, slash);
    *slash = 0;
    int next;
    if (step(trail, at, name, &next) < 0) return -1;
    if (next < 0) return 0;
    close_fd(&at);
    at = next;
    if (read_marks(trail, at, done, rest) < 0) return -1;
    if (last) break;
    *slash = '/';
    name = slash + 1;
  }
  *found = at;
  at = -1;
  return 0;
}

static int add_part(struct draft *merge, unsigned layer, int dir) {
  if (merge->parts == MAX_LOWERS) return errno = ELOOP, -1;
  merge->part[merge->parts].layer = layer;
  return handle_of(dir, &merge->part[merge->parts++].handle);
}

static int follow_into(struct draft *merge, struct trail *trail, unsigned layer, int from) {
  AUTO_CLOSE int dir = -1;
  if (follow(trail, from, &dir) < 0) return -1;
  return dir < 0 ? 0 : add_part(merge, layer, dir);
}

static const char *prefix_of(const struct merge *parent) {
  return strcmp(parent->below, "/") == 0 ? "" : parent->below;
}

/* Collects the source directories of `name`, which part `first` of its parent has first. */
static int collect(struct flatten *flatten, const struct merge *parent, const int *dirs, unsigned first,
                   const char *name, struct draft *child) {
  struct trail trail = {.stopped = false};
  unsigned layer = 0;
  if (join(trail.path, name, "", "") < 0) return -1;
  for (unsigned i = first; i < parent->parts && !trail.stopped && trail.path[0] != '/'; i++) {
    layer = parent->part[i].layer;
    if (follow_into(child, &trail, layer, dirs[i]) < 0) return -1;
  }
  while (trail.path[0] == '/' && !trail.stopped && ++layer < flatten->roots) {
    if (follow_into(child, &trail, layer, flatten->root[layer]) < 0) return -1;
  }
  child->below[0] = 0;
  if (trail.stopped) return 0;
  if (trail.path[0] == '/') return join(child->below, trail.path, "", "");
  return parent->below[0] == 0 ? 0 : join(child->below, prefix_of(parent), "/", trail.path);
}

/* Marks a directory of the result with its continuation in the layers below. */
static int write_marks(const struct merge *parent, const struct draft *child, const char *name, int dir) {
  char natural[MAX_REDIRECT];
  if (child->below[0] == 0) return parent->below[0] == 0 ? 0 : fsetxattr(dir, OPAQUE, "y", 1, 0);
  if (join(natural, prefix_of(parent), "/", name) < 0) return -1;
  if (parent->below[0] && strcmp(natural, child->below) == 0) return 0;
  return fsetxattr(dir, REDIRECT, child->below, strlen(child->below), 0);
}

static int merge_child_dir(struct flatten *flatten, const struct merge *parent, const int *dirs, unsigned first,
                           const char *name, int to, struct fail *fail) {
  static struct draft child;
  struct merge *made = NULL;
  child.parts = 0;
  int dir = -1;
  bool good = collect(flatten, parent, dirs, first, name, &child) == 0 && mkdirat(to, name, 0700) == 0 &&
              (dir = open_child(to, name)) >= 0 && write_marks(parent, &child, name, dir) == 0 &&
              handle_of(dir, &child.to) == 0 && (made = merge_of(&child)) != NULL && stack_push(&flatten->todo, &made) == 0;
  if (!good) {
    fail_errno(fail, "flatten", "%.100s", name);
    free(made);
  }
  close_fd(&dir);
  return good ? 0 : -1;
}

/* 1 if a part above `first` has this name, 0 if none has, -1 with errno. */
static int is_decided(const int *dirs, unsigned first, const char *name) {
  struct stat stat;
  int found = 0;
  for (unsigned i = 0; i < first && found == 0; i++) found = look_up(dirs[i], name, &stat);
  return found;
}

static int merge_entry(struct flatten *flatten, const struct merge *merge, const int *dirs, unsigned part, const char *name,
                       int to, struct fail *fail) {
  struct stat stat;
  int decided = is_decided(dirs, part, name);
  if (decided > 0) return 0;
  if (decided < 0 || fstatat(dirs[part], name, &stat, AT_SYMLINK_NOFOLLOW) < 0) return fail_errno(fail, "flatten", "%.100s", name);
  if (S_ISDIR(stat.st_mode)) return merge_child_dir(flatten, merge, dirs, part, name, to, fail);
  if (is_whiteout(&stat) && merge->below[0] == 0) return 0; /* nothing below to hide */
  return copy_entry(&flatten->copier, dirs[part], to, name, &stat, fail);
}

static int merge_part(struct flatten *flatten, const struct merge *merge, const int *dirs, unsigned part, int to,
                      struct fail *fail) {
  AUTO_CLOSE_DIR DIR *list = io_take_dir(fcntl(dirs[part], F_DUPFD_CLOEXEC, 0));
  if (list == NULL) return fail_errno(fail, "flatten", "opendir");
  struct dirent *entry;
  while ((entry = io_next_entry(list)) != NULL) {
    if (merge_entry(flatten, merge, dirs, part, entry->d_name, to, fail) < 0) return -1;
  }
  return errno != 0 ? fail_errno(fail, "flatten", "readdir") : 0;
}

static int merge_dir(struct flatten *flatten, const struct merge *merge, struct fail *fail) {
  int dirs[MAX_LOWERS];
  struct stat stat;
  unsigned opened = 0;
  AUTO_CLOSE int to = handle_open(flatten->root[0], &merge->to, O_RDONLY | O_DIRECTORY);
  int result = to < 0 ? fail_errno(fail, "flatten", "open by handle") : 0;
  for (; opened < merge->parts && result == 0; opened++) {
    dirs[opened] = handle_open(flatten->root[0], &merge->part[opened].handle, O_RDONLY | O_DIRECTORY);
    if (dirs[opened] < 0) result = fail_errno(fail, "flatten", "open by handle");
  }
  for (unsigned i = 0; i < merge->parts && result == 0; i++) result = merge_part(flatten, merge, dirs, i, to, fail);
  if (result == 0 && fstat(dirs[0], &stat) < 0) result = fail_errno(fail, "flatten", "stat");
  if (result == 0) result = copy_attributes(&flatten->copier, dirs[0], to, &stat, fail);
  while (opened > 0) close_fd(&dirs[--opened]);
  return result;
}

/* Flattens one tree from all layers that have it. */
static int flatten_tree(const int *layers, unsigned count, int to_layer, const char *tree, struct fail *fail) {
  struct flatten flatten = {
      .copier = {.reflink = warden.method != CLONE_BY_COPY, .skip_overlay = true},
      .todo = {.size = sizeof(struct merge *)},
  };
  static struct draft top;
  struct merge *merge = NULL;
  top.parts = 0;
  strcpy(top.below, "/");
  bool good = mkdirat(to_layer, tree, 0755) == 0;
  for (unsigned i = 0; i < count && good; i++) {
    int root = open_child(layers[i], tree);
    if (root < 0 && errno == ENOENT) continue;
    if (root < 0) {
      good = false;
      break;
    }
    good = add_part(&top, flatten.roots, root) == 0;
    flatten.root[flatten.roots++] = root;
  }
  AUTO_CLOSE int to = good ? open_child(to_layer, tree) : -1;
  good = good && to >= 0 && handle_of(to, &top.to) == 0 && (merge = merge_of(&top)) != NULL && stack_push(&flatten.todo, &merge) == 0;
  int result = good ? 0 : fail_errno(fail, "flatten", "tree %s", tree);
  if (!good) free(merge);
  while (stack_pop(&flatten.todo, &merge)) {
    if (result == 0) result = merge_dir(&flatten, merge, fail);
    free(merge);
  }
  while (flatten.roots > 0) close_fd(&flatten.root[--flatten.roots]);
  inodes_free(&flatten.copier.links);
  stack_free(&flatten.todo);
  return result;
}

/* Flattens the trees of one layer that no layer above it has. */
static int flatten_trees(const int *layers, unsigned count, unsigned layer, int to, struct fail *fail) {
  AUTO_CLOSE_DIR DIR *list = io_take_dir(path_open_dir(layers[layer], "."));
  if (list == NULL) return fail_errno(fail, "flatten", "opendir");
  struct dirent *entry;
  while ((entry = io_next_entry(list)) != NULL) {
    if (strchr(entry->d_name, '.') != NULL) continue;
    int decided = is_decided(layers, layer, entry->d_name);
    if (decided < 0) return fail_errno(fail, "flatten", "tree %.100s", entry->d_name);
    if (decided == 0 && flatten_tree(layers, count, to, entry->d_name, fail) < 0) return -1;
  }
  return errno != 0 ? fail_errno(fail, "flatten", "readdir") : 0;
}

int layer_flatten(const struct request *request, struct fail *fail) {
  int layers[MAX_LOWERS];
  unsigned count = 0;
  char temp[48];
  AUTO_CLOSE int to = layer_make_temp(temp, fail);
  int result = to < 0 ? -1 : 0;
  for (; count < request->froms && result == 0; count++) {
    layers[count] = path_layer(request->from[count], fail);
    if (layers[count] < 0) result = -1;
  }
  for (unsigned i = 0; i < request->froms && result == 0; i++) result = flatten_trees(layers, count, i, to, fail);
  while (count > 0) close_fd(&layers[--count]);
  if (result == 0 && layer_publish(temp, request->to, fail) == 0) return 0;
  if (to >= 0) layer_discard(temp);
  return -1;
}
