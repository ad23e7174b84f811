#include "link/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "message.h"

static int ends[2] = {-1, -1};
static size_t left;

/* Setting the size may fail: a smaller pipe takes fewer bytes at a time. */
static bool open_pipe(void) {
  if (ends[0] >= 0) return true;
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) return false;
  fcntl(ends[1], F_SETPIPE_SZ, MAX_DATA);
  return true;
}

ssize_t pages_take(int file, uint64_t offset, size_t length) {
  off_t at = (off_t)offset;
  if (!open_pipe()) {
    errno = EINVAL;
    return -1;
  }
  ssize_t n = splice(file, &at, ends[1], NULL, length, 0);
  if (n > 0) left = (size_t)n;
  if (n < 0) {
    int err = errno;
    pages_drop(); /* partial data must not start the next frame */
    errno = err;
  }
  return n;
}

size_t pages_left(void) {
  return left;
}

ssize_t pages_send(int socket) {
  ssize_t n = splice(ends[0], NULL, socket, NULL, left, SPLICE_F_NONBLOCK);
  if (n > 0) left -= (size_t)n;
  return n;
}

bool pages_copy(uint8_t *to) {
  while (left > 0) {
    ssize_t n = read(ends[0], to, left);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    left -= (size_t)n;
  }
  return true;
}

void pages_drop(void) {
  left = 0;
  if (ends[0] < 0) return;
  close(ends[0]);
  close(ends[1]);
  ends[0] = ends[1] = -1;
}
