#include "io.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { COPY_CHUNK = 256 * 1024, COPY_RANGE = 64 * 1024 * 1024 };

void close_fd(int *fd) {
  int err = errno;
  if (*fd >= 0) close(*fd);
  *fd = -1;
  errno = err;
}

void close_dir(DIR **dir) {
  int err = errno;
  if (*dir != NULL) closedir(*dir);
  *dir = NULL;
  errno = err;
}

void close_file(FILE **file) {
  int err = errno;
  if (*file != NULL) fclose(*file);
  *file = NULL;
  errno = err;
}

bool io_write_all(int fd, const void *bytes, size_t length) {
  const char *at = bytes;
  while (length > 0) {
    ssize_t n = write(fd, at, length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += n;
    length -= (size_t)n;
  }
  return true;
}

ssize_t io_take_text(int fd, char *text, size_t size) {
  ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
  text[got < 0 ? 0 : got] = 0;
  close_fd(&fd);
  return got;
}

DIR *io_take_dir(int fd) {
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  if (dir == NULL) close_fd(&fd);
  return dir;
}

FILE *io_take_file(int fd) {
  FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
  if (file == NULL) close_fd(&fd);
  return file;
}

struct dirent *io_next_entry(DIR *dir) {
  struct dirent *entry;
  do {
    errno = 0;
    entry = dir == NULL ? NULL : readdir(dir);
  } while (entry != NULL && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
  return entry;
}

/* With pread and pwrite, where the kernel cannot copy between these two files. */
static int copy_bytes(int from, int to, off_t at, off_t end) {
  static char chunk[COPY_CHUNK];
  while (at < end) {
    ssize_t n = pread(from, chunk, end - at < COPY_CHUNK ? (size_t)(end - at) : COPY_CHUNK, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return (int)n;
    for (ssize_t done = 0; done < n;) {
      ssize_t written = pwrite(to, chunk + done, (size_t)(n - done), at + done);
      if (written < 0 && errno != EINTR) return -1;
      if (written > 0) done += written;
    }
    at += n;
  }
  return 0;
}

static int copy_range(int from, int to, off_t at, off_t end) {
  while (at < end) {
    off_t in = at, out = at;
    ssize_t n = copy_file_range(from, &in, to, &out, end - at < COPY_RANGE ? (size_t)(end - at) : COPY_RANGE, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO)) return -1;
    if (n <= 0) return copy_bytes(from, to, at, end);
    at += n;
  }
  return 0;
}

int io_copy_data(int from, int to, off_t size) {
  if (ftruncate(to, size) < 0) return -1;
  for (off_t at = 0; at < size;) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return 0;
    off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
    if (data < 0 || hole <= data || hole > size) {
      if (data < 0) data = at;
      hole = size;
    }
    if (copy_range(from, to, data, hole) < 0) return -1;
    at = hole;
  }
  return 0;
}
