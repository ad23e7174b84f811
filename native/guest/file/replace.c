#include "file/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int open_temp(struct replace *replace, const struct replace_want *want, const char **stage) {
  struct stat st;
  bool exists = fstatat(replace->dir, replace->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
  *stage = "open";
  if (exists) {
    if (want->exclusive) return EEXIST;
    if (S_ISDIR(st.st_mode)) return EISDIR;
    /* Replacing a device or a fifo would break its users. */
    if (!want->any && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) return EOPNOTSUPP;
  } else if (errno != ENOENT) {
    return errno;
  }
  bool inherits = exists && S_ISREG(st.st_mode);
  replace->mode = want->mode != REPLACE_SAME_MODE ? want->mode & 07777 : inherits ? st.st_mode & 07777 : 0644;
  path_temp(replace->temp);
  replace->fd = openat(replace->dir, replace->temp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (replace->fd < 0) return errno;
  *stage = "chown";
  const struct user_ids *owner = want->owner != NULL ? want->owner : inherits ? NULL : want->new_owner;
  if (owner != NULL) return fchown(replace->fd, owner->uid, owner->gid) < 0 ? errno : 0;
  if (inherits && fchown(replace->fd, st.st_uid, st.st_gid) < 0 && path_chown_matters()) return errno;
  return 0;
}

int replace_begin(struct replace *replace, const struct replace_want *want, const char **stage) {
  char path[FIELDS_PATH_SIZE], dir[FIELDS_PATH_SIZE];
  *replace = (struct replace){.dir = -1, .fd = -1, .exclusive = want->exclusive};
  *stage = "open";
  if (strlen(want->path) >= sizeof path) return ENAMETOOLONG;
  strcpy(path, want->path);
  int err = want->follow && !want->exclusive ? path_follow(want->path, path) : 0;
  if (err == 0) err = path_split(path, dir, replace->name);
  if (err == 0 && want->parents) {
    *stage = "mkdir";
    err = path_make(dir, want->owner != NULL ? want->owner : want->new_owner);
  }
  if (err != 0) return err;
  *stage = "open";
  replace->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (replace->dir < 0) return errno;
  err = open_temp(replace, want, stage);
  if (err != 0) replace_cancel(replace);
  return err;
}

static int write_all(int fd, struct iovec part[2]) {
  size_t left = part[0].iov_len + part[1].iov_len;
  while (left > 0) {
    ssize_t n = writev(fd, part, 2);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    left -= (size_t)n;
    for (int i = 0; i < 2; i++) {
      size_t done = (size_t)n < part[i].iov_len ? (size_t)n : part[i].iov_len;
      part[i].iov_base = (char *)part[i].iov_base + done;
      part[i].iov_len -= done;
      n -= (ssize_t)done;
    }
  }
  return 0;
}

/* Writes whole pages only: a page that is filled in two steps costs a filesystem almost twice as much. */
int replace_write(struct replace *replace, const void *bytes, size_t length, const char **stage) {
  size_t left = (replace->tail_length + length) % REPLACE_PAGE;
  *stage = "write";
  if (replace->tail_length + length >= REPLACE_PAGE) {
    struct iovec part[2] = {{replace->tail, replace->tail_length}, {(void *)bytes, length - left}};
    int err = write_all(replace->fd, part);
    if (err != 0) {
      replace_cancel(replace);
      return err;
    }
    bytes = (const char *)bytes + (length - left);
    length = left;
    replace->tail_length = 0;
  }
  if (length > 0) memcpy(replace->tail + replace->tail_length, bytes, length);
  replace->tail_length += length;
  return 0;
}

static int rename_over(struct replace *replace) {
  if (!replace->exclusive) return renameat(replace->dir, replace->temp, replace->dir, replace->name) < 0 ? errno : 0;
  if (renameat2(replace->dir, replace->temp, replace->dir, replace->name, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  /* A filesystem without RENAME_NOREPLACE: link also fails if the name exists. */
  if (linkat(replace->dir, replace->temp, replace->dir, replace->name, 0) < 0) return errno;
  unlinkat(replace->dir, replace->temp, 0);
  return 0;
}

int replace_commit(struct replace *replace, const char **stage) {
  struct iovec part[2] = {{replace->tail, replace->tail_length}};
  *stage = "write";
  int err = write_all(replace->fd, part);
  if (err == 0) {
    *stage = "chmod";
    err = fchmod(replace->fd, replace->mode) < 0 ? errno : 0;
  }
  if (err == 0) {
    *stage = "rename";
    err = rename_over(replace);
  }
  if (err == 0) replace->temp[0] = 0;
  replace_cancel(replace);
  return err;
}

void replace_cancel(struct replace *replace) {
  if (replace->fd >= 0) {
    close(replace->fd);
    if (replace->temp[0] != 0) unlinkat(replace->dir, replace->temp, 0);
  }
  if (replace->dir >= 0) close(replace->dir);
  replace->fd = replace->dir = -1;
}
