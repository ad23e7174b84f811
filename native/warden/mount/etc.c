#include "mount/etc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths.h"

enum {
  MODE = 0644,
  MAX_OLD_BYTES = 64 * 1024,
};
static const char NEW[] = ".islet-new";

/* An empty file of the image that should be empty stays: copying it up would cost as much as a new file. */
static bool is_right(const struct stat *old, const struct etc_file *file, uint32_t owner) {
  return file->length == 0 && S_ISREG(old->st_mode) && old->st_size == 0 && (old->st_mode & 07777) == MODE &&
         old->st_uid == owner && old->st_gid == owner;
}

/*
 * Replacing a large file may take the kernel seconds, so that is left to the guest: then the sandbox itself waits. A fifo, a
 * socket or a device has no content, and is not opened.
 */
static bool is_small(const struct stat *old) {
  if (S_ISDIR(old->st_mode)) return false;
  return !S_ISREG(old->st_mode) || (old->st_size <= MAX_OLD_BYTES && old->st_blocks <= MAX_OLD_BYTES / 512);
}

/* Replaces whatever has the name, without following it. */
static bool replace(int etc, const struct etc_file *file) {
  AUTO_CLOSE int fd = openat(etc, NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
  if (fd < 0) return false;
  if (io_write_all(fd, file->content, file->length) && renameat(etc, NEW, etc, file->name) == 0) return true;
  unlinkat(etc, NEW, 0);
  return false;
}

static bool put(int etc, const struct etc_file *file, uint32_t owner) {
  struct stat old;
  if (fstatat(etc, file->name, &old, AT_SYMLINK_NOFOLLOW) < 0) return errno == ENOENT && replace(etc, file);
  return is_right(&old, file, owner) || (is_small(&old) && replace(etc, file));
}

bool etc_write(int root, const struct bind *bind) {
  AUTO_CLOSE int etc = path_open_dir(root, "etc");
  if (etc < 0) return false;
  for (unsigned i = 0; i < bind->etcs; i++) {
    if (!put(etc, &bind->etc[i], bind->uid_base)) return false;
  }
  return true;
}
