/* remove: serves REMOVE; removes trees, in a worker. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/path.h"
#include "file/tree.h"
#include "io.h"
#include "link/fields.h"
#include "link/reply.h"
#include "link/worker.h"
#include "requests.h"

enum {
  REMOVE_MAX_DEPTH = 64, /* deeper directories are moved to the top first, so that any depth needs few fds */
  REMOVE_PASSES = 64,    /* over one directory, for entries that were moved up or made meanwhile */
};

struct removal {
  int top; /* the directory that is being removed */
  const char *path;
  struct tree_failure *failure;
};

static bool remove_content(struct removal *removal, int fd, unsigned depth);

void tree_fail(struct tree_failure *failure, int err, const char *stage, const char *path) {
  if (failure->err != 0) return;
  failure->err = err;
  failure->stage = stage;
  strncpy(failure->path, path, sizeof failure->path - 1);
}

static bool is_directory(int dir, const struct dirent *entry) {
  struct stat st;
  if (entry->d_type != DT_UNKNOWN) return entry->d_type == DT_DIR;
  return fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int remove_directory(struct removal *removal, int dir, const char *name, unsigned depth) {
  if (depth >= REMOVE_MAX_DEPTH) {
    char temp[PATH_TEMP_SIZE];
    path_temp(temp);
    return renameat(dir, name, removal->top, temp) < 0 ? errno : 0;
  }
  int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  remove_content(removal, fd, depth + 1);
  close(fd);
  return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? errno : 0;
}

/* True if something was removed or moved: another pass may then find the directory empty. */
static bool remove_content(struct removal *removal, int fd, unsigned depth) {
  AUTO_CLOSE_DIR DIR *dir = io_take_dir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir == NULL) {
    tree_fail(removal->failure, errno, "open", removal->path);
    return false;
  }
  bool changed = false;
  struct dirent *entry;
  while ((entry = io_next_entry(dir)) != NULL) {
    int err;
    if (is_directory(fd, entry)) err = remove_directory(removal, fd, entry->d_name, depth);
    else err = unlinkat(fd, entry->d_name, 0) < 0 ? errno : 0;
    if (err == 0) changed = true;
    else if (err != ENOENT && err != ENOTEMPTY) tree_fail(removal->failure, err, "unlink", entry->d_name);
  }
  return changed;
}

void tree_remove(const char *path, struct tree_failure *failure) {
  char dir_path[FIELDS_PATH_SIZE], name[256];
  struct stat st;
  if (path_split(path, dir_path, name) != 0) {
    tree_fail(failure, EINVAL, "unlink", path);
    return;
  }
  AUTO_CLOSE int dir = open(dir_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
    tree_fail(failure, errno, "stat", path);
  } else if (!S_ISDIR(st.st_mode)) {
    if (unlinkat(dir, name, 0) < 0) tree_fail(failure, errno, "unlink", path);
  } else {
    AUTO_CLOSE int top = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct removal removal = {top, path, failure};
    for (int i = 0; top >= 0 && i < REMOVE_PASSES; i++) {
      if (!remove_content(&removal, top, 0)) break;
      /* While nothing fails, passes are unlimited: a deep tree may need many of them. */
      if (failure->err == 0 && i == REMOVE_PASSES - 1) i--;
      if (unlinkat(dir, name, AT_REMOVEDIR) == 0) return;
    }
    if (unlinkat(dir, name, AT_REMOVEDIR) < 0) tree_fail(failure, errno, "rmdir", path);
  }
}

static void job(uint32_t stream, const void *arg) {
  static struct tree_failure failure;
  tree_remove(arg, &failure);
  if (failure.err != 0) reply_errno(stream, failure.stage, failure.err, failure.path);
  else reply_ok(stream);
}

void request_remove(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "";
  uint32_t recursive = 0;
  const struct fields_want want[] = {FIELDS_PATH(REMOVE_path, path), FIELDS_U32(REMOVE_recursive, &recursive)};
  if (!fields_read(req, want, 2)) return;
  char dir[FIELDS_PATH_SIZE], name[256];
  struct stat st;
  if (path_split(path, dir, name) != 0) {
    fields_bad(req, "the path has no name to remove");
  } else if (lstat(path, &st) < 0) {
    reply_errno(req->stream, "stat", errno, path);
  } else if (recursive && S_ISDIR(st.st_mode)) {
    worker_start(req->stream, job, path, false);
  } else if ((S_ISDIR(st.st_mode) ? rmdir(path) : unlink(path)) < 0) {
    reply_errno(req->stream, "unlink", errno, path);
  } else {
    reply_ok(req->stream);
  }
}
