#include "layer/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { MAX_XATTR_LIST = 64 * 1024, MAX_XATTR_VALUE = 64 * 1024 };

static int fail_at(struct fail *fail, const char *name) {
  return fail_errno(fail, "copy", "%.100s", name);
}

/* Uses /proc/self/fd, which also works for symlinks and devices that were opened with O_PATH. */
static int copy_xattrs(const struct copier *copier, int from, int to) {
  static char names[MAX_XATTR_LIST], value[MAX_XATTR_VALUE];
  char source[32], target[32];
  snprintf(source, sizeof source, "/proc/self/fd/%d", from);
  snprintf(target, sizeof target, "/proc/self/fd/%d", to);
  ssize_t length = listxattr(source, names, sizeof names);
  if (length < 0) return errno == EOPNOTSUPP ? 0 : -1;
  for (char *name = names; name < names + length; name += strlen(name) + 1) {
    if (copier->skip_overlay && strncmp(name, "trusted.overlay.", 16) == 0) continue;
    ssize_t bytes = getxattr(source, name, value, sizeof value);
    if (bytes < 0 && errno == ENODATA) continue;
    if (bytes < 0 || setxattr(target, name, value, (size_t)bytes, 0) < 0) return -1;
  }
  return 0;
}

int copy_attributes(const struct copier *copier, int from, int to, const struct stat *stat, struct fail *fail) {
  const struct timespec times[2] = {stat->st_atim, stat->st_mtim};
  if (fchownat(to, "", stat->st_uid, stat->st_gid, AT_EMPTY_PATH) < 0) return fail_errno(fail, "copy", "chown");
  if (copy_xattrs(copier, from, to) < 0) return fail_errno(fail, "copy", "xattrs");
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", to);
  if (!S_ISLNK(stat->st_mode) && chmod(path, stat->st_mode & 07777) < 0) return fail_errno(fail, "copy", "chmod");
  if (utimensat(to, "", times, AT_EMPTY_PATH) < 0) return fail_errno(fail, "copy", "utimens");
  return 0;
}

static int copy_data(const struct copier *copier, int from, int to, off_t size) {
  if (size == 0 || (copier->reflink && ioctl(to, FICLONE, from) == 0)) return 0;
  return io_copy_data(from, to, size);
}

static int copy_file(struct copier *copier, int from, int to, const char *name, const struct stat *stat, struct fail *fail) {
  AUTO_CLOSE int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  AUTO_CLOSE int target = source < 0 ? -1 : openat(to, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (target < 0 || copy_data(copier, source, target, stat->st_size) < 0) return fail_at(fail, name);
  return copy_attributes(copier, source, target, stat, fail);
}

static int copy_special(struct copier *copier, int from, int to, const char *name, const struct stat *stat, struct fail *fail) {
  if (S_ISLNK(stat->st_mode)) {
    char text[4096 + 1];
    ssize_t length = readlinkat(from, name, text, sizeof text - 1);
    if (length < 0) return fail_at(fail, name);
    text[length] = 0;
    if (symlinkat(text, to, name) < 0) return fail_at(fail, name);
  } else if (mknodat(to, name, stat->st_mode & (S_IFMT | 07777), stat->st_rdev) < 0) {
    return fail_at(fail, name);
  }
  AUTO_CLOSE int source = openat(from, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  AUTO_CLOSE int target = openat(to, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (source < 0 || target < 0) return fail_at(fail, name);
  return copy_attributes(copier, source, target, stat, fail);
}

/* 1 if the file was copied before under another name: links to that copy. */
static int link_again(struct copier *copier, int to, const char *name, const struct stat *stat, struct fail *fail) {
  const struct inode_entry *known = stat->st_nlink > 1 ? inodes_find(&copier->links, stat) : NULL;
  if (known == NULL) return 0;
  AUTO_CLOSE int copy = handle_open(to, &known->handle, O_PATH);
  if (copy < 0 || linkat(copy, "", to, name, AT_EMPTY_PATH) < 0) return fail_at(fail, name);
  return 1;
}

int copy_entry(struct copier *copier, int from, int to, const char *name, const struct stat *stat, struct fail *fail) {
  int linked = link_again(copier, to, name, stat, fail);
  if (linked != 0) return linked < 0 ? -1 : 0;
  int result = S_ISREG(stat->st_mode) ? copy_file(copier, from, to, name, stat, fail)
                                      : copy_special(copier, from, to, name, stat, fail);
  if (result < 0 || stat->st_nlink < 2) return result;
  struct handle handle;
  AUTO_CLOSE int copy = openat(to, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (copy < 0 || handle_of(copy, &handle) < 0 || inodes_add(&copier->links, stat, &handle) < 0) return fail_at(fail, name);
  return 0;
}

struct pair {
  struct handle from, to;
};

static int push_pair(struct stack *todo, int from, int to) {
  struct pair pair;
  return handle_of(from, &pair.from) < 0 || handle_of(to, &pair.to) < 0 ? -1 : stack_push(todo, &pair);
}

static int copy_child_dir(struct stack *todo, int from, int to, const char *name, struct fail *fail) {
  if (mkdirat(to, name, 0700) < 0) return fail_at(fail, name);
  AUTO_CLOSE int source = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  AUTO_CLOSE int target = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (source < 0 || target < 0 || push_pair(todo, source, target) < 0) return fail_at(fail, name);
  return 0;
}

/* Copies a directory's files and queues its directories; its times are set last. */
static int copy_dir(struct copier *copier, struct stack *todo, int from, int to, struct fail *fail) {
  struct stat stat;
  AUTO_CLOSE_DIR DIR *list = io_take_dir(fcntl(from, F_DUPFD_CLOEXEC, 0));
  if (list == NULL) return fail_errno(fail, "copy", "opendir");
  struct dirent *entry;
  while ((entry = io_next_entry(list)) != NULL) {
    if (fstatat(from, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0) return fail_at(fail, entry->d_name);
    int result = S_ISDIR(stat.st_mode) ? copy_child_dir(todo, from, to, entry->d_name, fail)
                                       : copy_entry(copier, from, to, entry->d_name, &stat, fail);
    if (result < 0) return -1;
  }
  if (errno != 0) return fail_errno(fail, "copy", "readdir");
  if (fstat(from, &stat) < 0) return fail_errno(fail, "copy", "stat");
  return copy_attributes(copier, from, to, &stat, fail);
}

int copy_tree(struct copier *copier, int from, int to, struct fail *fail) {
  struct stack todo = {.size = sizeof(struct pair)};
  struct pair pair;
  int result = push_pair(&todo, from, to) < 0 ? fail_errno(fail, "copy", "file handles") : 0;
  while (result == 0 && stack_pop(&todo, &pair)) {
    AUTO_CLOSE int source = handle_open(from, &pair.from, O_RDONLY | O_DIRECTORY);
    AUTO_CLOSE int target = handle_open(to, &pair.to, O_RDONLY | O_DIRECTORY);
    if (source < 0 || target < 0) result = fail_errno(fail, "copy", "open by handle");
    else result = copy_dir(copier, &todo, source, target, fail);
  }
  stack_free(&todo);
  return result;
}

static int count_dir(struct stack *todo, struct inodes *seen, int dir, uint64_t *bytes) {
  AUTO_CLOSE_DIR DIR *list = io_take_dir(fcntl(dir, F_DUPFD_CLOEXEC, 0));
  if (list == NULL) return -1;
  struct dirent *entry;
  int result = 0;
  while (result == 0 && (entry = io_next_entry(list)) != NULL) {
    struct stat stat;
    if (fstatat(dir, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0) continue; /* removed meanwhile */
    if (!S_ISDIR(stat.st_mode) && stat.st_nlink > 1) {
      if (inodes_find(seen, &stat) != NULL) continue;
      result = inodes_add(seen, &stat, NULL);
    }
    *bytes += (uint64_t)stat.st_blocks * 512;
    if (!S_ISDIR(stat.st_mode)) continue;
    struct handle handle;
    AUTO_CLOSE int below = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below >= 0) result = handle_of(below, &handle) < 0 ? -1 : stack_push(todo, &handle);
  }
  return result;
}

int copy_usage(int dir, uint64_t *bytes, struct fail *fail) {
  struct stack todo = {.size = sizeof(struct handle)};
  struct inodes seen = {0};
  struct handle handle;
  int result = handle_of(dir, &handle) < 0 ? -1 : stack_push(&todo, &handle);
  *bytes = 0;
  while (result == 0 && stack_pop(&todo, &handle)) {
    AUTO_CLOSE int below = handle_open(dir, &handle, O_RDONLY | O_DIRECTORY);
    if (below >= 0) result = count_dir(&todo, &seen, below, bytes); /* else removed meanwhile */
  }
  stack_free(&todo);
  inodes_free(&seen);
  return result < 0 ? fail_errno(fail, "usage", "walk") : 0;
}
