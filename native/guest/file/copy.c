/* copy: serves COPY and MOVE; copies trees, in a worker. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/copy_skip.h"
#include "file/hardlinks.h"
#include "file/path.h"
#include "file/tree.h"
#include "io.h"
#include "link/fields.h"
#include "link/reply.h"
#include "link/worker.h"
#include "requests.h"

struct copy_job {
  char from[FIELDS_PATH_SIZE], to[FIELDS_PATH_SIZE];
  bool recursive, overwrite, move, owned;
  struct user_ids owner; /* of the copy, if owned is set; else the source's */
  struct copy_skip skip;
};

struct copying {
  const struct copy_job *job;
  struct hardlinks links;
  struct tree_failure *failure;
  char to[PATH_MAX]; /* the path that is being made */
  size_t root;       /* the length of `to` at the top */
  bool at_target;    /* the failed step was about the target, not the source */
};

static int copy_entry(struct copying *copying, int from, const char *from_name, int to, const char *to_name);

/* Remembers that `err` is about the target. */
static int of_target(struct copying *copying, int err) {
  copying->at_target = err != 0;
  return err;
}

/* Keeps the failure with the path it is about. */
static void fail(struct copying *copying, int err) {
  char path[2 * PATH_MAX];
  if (copying->at_target) path_blamed(err, copying->to, path);
  else snprintf(path, sizeof path, "%s%s", copying->job->from, copying->to + copying->root);
  path[PATH_MAX - 1] = 0;
  tree_fail(copying->failure, err, "copy", path);
}

int tree_restore(int fd, int dir, const char *name, const struct stat *st) {
  struct timespec times[2] = {st->st_atim, st->st_mtim};
  int chowned = fd >= 0 ? fchown(fd, st->st_uid, st->st_gid) : fchownat(dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW);
  if (chowned < 0 && path_chown_matters()) return errno;
  /* After the owner, because changing it clears setuid and setgid. */
  if (fd >= 0 && fchmod(fd, st->st_mode & 07777) < 0) return errno;
  if (fd < 0 && !S_ISLNK(st->st_mode) && fchmodat(dir, name, st->st_mode & 07777, 0) < 0) return errno;
  int timed = fd >= 0 ? futimens(fd, times) : utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
  /* EINVAL: the kernel refuses a time that it reported itself; gVisor does that. */
  return timed < 0 && errno != EINVAL ? errno : 0;
}

static int copy_file(struct copying *copying, int from_dir, const char *from_name, int to_dir, const char *to_name,
                     const struct stat *st) {
  const char *linked = hardlinks_find(&copying->links, st);
  if (linked != NULL && linkat(AT_FDCWD, linked, to_dir, to_name, 0) == 0) return 0;
  AUTO_CLOSE int from = openat(from_dir, from_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (from < 0) return errno;
  AUTO_CLOSE int to = openat(to_dir, to_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (to < 0) return of_target(copying, errno);
  int err = io_copy_data(from, to, st->st_size) < 0 ? errno : of_target(copying, tree_restore(to, -1, NULL, st));
  if (err != 0) unlinkat(to_dir, to_name, 0);
  else hardlinks_add(&copying->links, st, copying->to);
  return err;
}

static int copy_directory(struct copying *copying, int from_dir, const char *from_name, int to_dir, const char *to_name,
                          const struct stat *st) {
  if (!copying->job->recursive) return EISDIR;
  if (mkdirat(to_dir, to_name, 0700) < 0 && !(errno == EEXIST && copying->job->overwrite))
    return of_target(copying, errno);
  int from = openat(from_dir, from_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  AUTO_CLOSE_DIR DIR *dir = io_take_dir(from);
  if (dir == NULL) return errno;
  AUTO_CLOSE int to = openat(to_dir, to_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (to < 0) return of_target(copying, errno);
  size_t length = strlen(copying->to);
  struct dirent *entry;
  while (copying->failure->err == 0 && (entry = io_next_entry(dir)) != NULL) {
    if (entry->d_type == DT_REG && path_is_temp(entry->d_name)) continue;
    if (length + strlen(entry->d_name) + 2 > sizeof copying->to) return ENAMETOOLONG;
    copying->to[length] = '/';
    strcpy(copying->to + length + 1, entry->d_name);
    bool skipped = copy_skips(&copying->job->skip, copying->to + copying->root + 1);
    int failed = skipped ? 0 : copy_entry(copying, from, entry->d_name, to, entry->d_name);
    if (failed != 0) fail(copying, failed);
    copying->to[length] = 0;
  }
  return copying->failure->err != 0 ? 0 : of_target(copying, tree_restore(to, -1, NULL, st));
}

static int copy_symlink(struct copying *copying, int from_dir, const char *from_name, int to_dir, const char *to_name, const struct stat *st) {
  char target[PATH_MAX];
  ssize_t n = readlinkat(from_dir, from_name, target, sizeof target - 1);
  if (n < 0) return errno;
  target[n] = 0;
  if (symlinkat(target, to_dir, to_name) < 0) return of_target(copying, errno);
  return of_target(copying, tree_restore(-1, to_dir, to_name, st));
}

static int copy_entry(struct copying *copying, int from, const char *from_name, int to, const char *to_name) {
  struct stat st, old;
  if (fstatat(from, from_name, &st, AT_SYMLINK_NOFOLLOW) < 0) return errno;
  if (copying->job->owned) {
    st.st_uid = copying->job->owner.uid;
    st.st_gid = copying->job->owner.gid;
  }
  bool exists = fstatat(to, to_name, &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists) {
    if (st.st_dev == old.st_dev && st.st_ino == old.st_ino) return EINVAL;
    if (!copying->job->overwrite) return of_target(copying, EEXIST);
    if (S_ISDIR(old.st_mode) && !S_ISDIR(st.st_mode)) return of_target(copying, EISDIR);
    if (!S_ISDIR(old.st_mode) && S_ISDIR(st.st_mode)) return of_target(copying, ENOTDIR);
    if (!S_ISDIR(old.st_mode) && unlinkat(to, to_name, 0) < 0) return of_target(copying, errno);
  }
  if (S_ISDIR(st.st_mode)) return copy_directory(copying, from, from_name, to, to_name, &st);
  if (S_ISREG(st.st_mode)) return copy_file(copying, from, from_name, to, to_name, &st);
  if (S_ISLNK(st.st_mode)) return copy_symlink(copying, from, from_name, to, to_name, &st);
  if (S_ISSOCK(st.st_mode)) return 0; /* useless without its listener */
  if (mknodat(to, to_name, st.st_mode, st.st_rdev) < 0) return of_target(copying, errno);
  return of_target(copying, tree_restore(-1, to, to_name, &st));
}

/* Whether the directory `fd` is the directory `st` or lies below it. */
static bool lies_within(int fd, const struct stat *st) {
  struct stat here, above;
  int at = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool within = false;
  while (at >= 0 && fstat(at, &here) == 0) {
    within = here.st_dev == st->st_dev && here.st_ino == st->st_ino;
    int up = within ? -1 : openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool root = up < 0 || fstat(up, &above) < 0 || (above.st_dev == here.st_dev && above.st_ino == here.st_ino);
    close(at);
    at = up;
    if (root) break;
  }
  if (at >= 0) close(at);
  return within;
}

static void copy_tree(const struct copy_job *job, struct tree_failure *failure) {
  static struct copying copying;
  char from_dir_path[FIELDS_PATH_SIZE], from_name[256], to_dir_path[FIELDS_PATH_SIZE], to_name[256];
  struct stat st;
  copying = (struct copying){.job = job, .failure = failure};
  strcpy(copying.to, job->to);
  copying.root = strlen(copying.to);
  if (path_split(job->from, from_dir_path, from_name) != 0 || path_split(job->to, to_dir_path, to_name) != 0) {
    tree_fail(failure, EINVAL, "copy", job->from);
    return;
  }
  AUTO_CLOSE int from_dir = open(from_dir_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (from_dir < 0 || fstatat(from_dir, from_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
    tree_fail(failure, errno, "open", job->from);
    return;
  }
  AUTO_CLOSE int to_dir = open(to_dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int err = to_dir < 0 ? of_target(&copying, errno) : 0;
  if (err == 0 && S_ISDIR(st.st_mode) && lies_within(to_dir, &st)) err = EINVAL;
  if (err == 0) err = copy_entry(&copying, from_dir, from_name, to_dir, to_name);
  if (err != 0) fail(&copying, err);
  hardlinks_free(&copying.links);
}

static void job(uint32_t stream, const void *arg) {
  const struct copy_job *copy = arg;
  static struct tree_failure failure;
  copy_tree(copy, &failure);
  if (copy->move && failure.err == 0) tree_remove(copy->from, &failure);
  if (failure.err != 0) reply_errno_at(stream, failure.stage, failure.err, failure.path);
  else reply_path(stream, copy->to);
}

void request_copy(const struct wire_frame *req) {
  struct copy_job copy = {0};
  char owner[FIELDS_OWNER_SIZE] = "";
  uint32_t recursive = 0, overwrite = 0;
  const struct fields_want want[] = {FIELDS_PATH(COPY_from, copy.from), FIELDS_PATH(COPY_to, copy.to),
                                     FIELDS_U32(COPY_recursive, &recursive), FIELDS_U32(COPY_overwrite, &overwrite),
                                     FIELDS_STR(COPY_owner, owner)};
  if (!fields_read(req, want, 5) || !path_owner(req->stream, owner, &copy.owner, &copy.owned)) return;
  if (!copy_skip_read(&copy.skip, req)) return;
  copy.recursive = recursive != 0;
  copy.overwrite = overwrite != 0;
  worker_start(req->stream, job, &copy, false);
  copy_skip_free(&copy.skip);
}

/* Whether the guest may change names in the directory that holds the path. */
static bool may_change(const char *path) {
  char dir[FIELDS_PATH_SIZE], name[256];
  return path_split(path, dir, name) == 0 && faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0;
}

/* Finds out which of its two paths a rename failed at: the kernel does not say. */
static void blame_rename(uint32_t stream, int err, const struct copy_job *copy) {
  char path[FIELDS_PATH_SIZE];
  struct stat st;
  bool denied = err == EACCES || err == EPERM || err == EROFS;
  bool at_target = err == EEXIST || err == ENOTEMPTY || err == EISDIR || err == ENOENT || err == ENOTDIR || denied;
  if (lstat(copy->from, &st) < 0 || (denied && (!may_change(copy->from) || may_change(copy->to)))) at_target = false;
  if (at_target) path_blamed(err, copy->to, path);
  else strcpy(path, copy->from);
  reply_errno_at(stream, "rename", err, path);
}

void request_move(const struct wire_frame *req) {
  struct copy_job copy = {.recursive = true, .move = true};
  uint32_t overwrite = 0;
  const struct fields_want want[] = {FIELDS_PATH(MOVE_from, copy.from), FIELDS_PATH(MOVE_to, copy.to),
                                     FIELDS_U32(MOVE_overwrite, &overwrite)};
  if (!fields_read(req, want, 3)) return;
  copy.overwrite = overwrite != 0;
  struct stat st;
  int err = renameat2(AT_FDCWD, copy.from, AT_FDCWD, copy.to, overwrite ? 0 : RENAME_NOREPLACE) < 0 ? errno : 0;
  if (err == EINVAL && !overwrite) {
    /* A filesystem without RENAME_NOREPLACE, or a directory moved into itself, which fails again below. */
    err = lstat(copy.to, &st) == 0 ? EEXIST : rename(copy.from, copy.to) < 0 ? errno : 0;
  }
  if (err == 0) reply_path(req->stream, copy.to);
  else if (err == EXDEV) worker_start(req->stream, job, &copy, false);
  else blame_rename(req->stream, err, &copy);
}
