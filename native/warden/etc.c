#include "etc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths.h"

enum { MODE = 0644 };

/* A file of an image that is empty as it should be stays: taking it up would cost as much as a new one. */
static bool is_there(int etc, const struct etc_file *file, uint32_t owner) {
  struct stat stat;
  return file->length == 0 && fstatat(etc, file->name, &stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(stat.st_mode) &&
         stat.st_size == 0 && (stat.st_mode & 07777) == MODE && stat.st_uid == owner && stat.st_gid == owner;
}

static bool write_all(int fd, const uint8_t *bytes, size_t length) {
  while (length > 0) {
    ssize_t n = write(fd, bytes, length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes += n;
    length -= (size_t)n;
  }
  return true;
}

/* Whatever has the name is replaced and not followed. */
static bool replace(int etc, const struct etc_file *file) {
  char temp[48];
  path_temp_name(temp);
  AUTO_CLOSE int fd = openat(etc, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
  if (fd < 0) return false;
  if (write_all(fd, file->content, file->length) && renameat(etc, temp, etc, file->name) == 0) return true;
  unlinkat(etc, temp, 0);
  return false;
}

bool etc_write(int root, const struct bind *bind) {
  AUTO_CLOSE int etc = path_open_dir(root, "etc");
  if (etc < 0) return false;
  for (unsigned i = 0; i < bind->etcs; i++) {
    if (!is_there(etc, &bind->etc[i], bind->uid_base) && !replace(etc, &bind->etc[i])) return false;
  }
  return true;
}
