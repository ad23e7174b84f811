/* read: serves READ. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link/fields.h"
#include "link/link.h"
#include "link/loop.h"
#include "link/reply.h"
#include "link/stream.h"
#include "link/task.h"
#include "message.h"
#include "requests.h"

enum { READ_BY_PAGES_BYTES = 128 * 1024 }; /* for a smaller file copying is cheaper than splice */

struct reading {
  struct stream stream;
  struct task task;
  int fd;
  bool by_pages; /* send with splice (pages.h): the file is large and supports it */
  uint64_t offset, left;
};

static void release(struct reading *reading) {
  stream_close(&reading->stream);
  task_cancel(&reading->task);
  close(reading->fd);
  free(reading);
}

/* Sends at most `want` bytes; returns like pread. */
static ssize_t send_some(struct reading *reading, size_t want) {
  uint32_t stream = reading->stream.number;
  if (reading->by_pages) {
    ssize_t n = link_send_file(MSG_DATA, stream, reading->fd, reading->offset, want);
    if (n >= 0 || errno == EINTR) return n;
    reading->by_pages = false; /* a real error shows up again in pread */
  }
  ssize_t n = pread(reading->fd, link_reserve(want), want, (off_t)reading->offset);
  if (n > 0) link_commit(MSG_DATA, stream, (size_t)n);
  return n;
}

static void run(struct task *task) {
  struct reading *reading = container_of(task, struct reading, task);
  uint32_t stream = reading->stream.number;
  size_t want = stream_may_send(&reading->stream);
  char byte;
  /* Without a window only END may be sent; on_window continues. */
  if (want == 0 && reading->left > 0 && pread(reading->fd, &byte, 1, (off_t)reading->offset) != 0) return;
  if (want > reading->left) want = (size_t)reading->left;
  ssize_t n = want == 0 ? 0 : send_some(reading, want);
  if (n < 0 && errno == EINTR) {
    task_queue(task, run);
  } else if (n < 0) {
    reply_errno(stream, "read", errno, "read");
    release(reading);
  } else if (n == 0) {
    link_send(MSG_END, stream, NULL, 0);
    release(reading);
  } else {
    reading->stream.sent += (uint64_t)n;
    reading->offset += (uint64_t)n;
    reading->left -= (uint64_t)n;
    task_queue(task, run);
  }
}

static void on_window(struct stream *stream) {
  task_queue(&container_of(stream, struct reading, stream)->task, run);
}

static void on_cancel(struct stream *stream) {
  release(container_of(stream, struct reading, stream));
}

static const struct stream_ops ops = {.window = on_window, .cancel = on_cancel};

/* Opens a regular file, or sends ERROR and returns -1. Never blocks, whatever is at the path. */
static int open_regular(uint32_t stream, const char *path, bool nofollow, struct stat *st) {
  /* Opening a device may have side effects, so look first. */
  bool other = fstatat(AT_FDCWD, path, st, nofollow ? AT_SYMLINK_NOFOLLOW : 0) == 0 && !S_ISREG(st->st_mode);
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (nofollow ? O_NOFOLLOW : 0);
  int fd = other ? -1 : open(path, flags);
  if (fd < 0 && !other) {
    reply_errno(stream, "open", errno, path);
    return -1;
  }
  if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode)) return fd;
  if (S_ISDIR(st->st_mode)) reply_errno(stream, "open", EISDIR, path);
  else reply_error(stream, KIND_UNSUPPORTED, "open", "not a regular file");
  if (fd >= 0) close(fd);
  return -1;
}

void request_read(const struct wire_frame *req) {
  char path[FIELDS_PATH_SIZE] = "";
  uint64_t offset = 0, length = UINT64_MAX;
  uint32_t nofollow = 0, window = INITIAL_WINDOW;
  const struct fields_want want[] = {FIELDS_PATH(READ_path, path), FIELDS_U64(READ_offset, &offset),
                                     FIELDS_U64(READ_length, &length), FIELDS_U32(READ_nofollow, &nofollow),
                                     FIELDS_U32(READ_window, &window)};
  if (!fields_read(req, want, 5)) return;
  if (offset > INT64_MAX) {
    fields_bad(req, "offset is out of range");
    return;
  }
  struct stat st;
  int fd = open_regular(req->stream, path, nofollow != 0, &st);
  if (fd < 0) return;
  struct reading *reading = reply_calloc(req->stream, sizeof *reading);
  if (reading == NULL || !stream_open(&reading->stream, req->stream, &ops)) {
    free(reading);
    close(fd);
    return;
  }
  stream_narrow(&reading->stream, window);
  reading->fd = fd;
  reading->offset = offset;
  reading->left = length;
  reading->by_pages = st.st_size > READ_BY_PAGES_BYTES && length > READ_BY_PAGES_BYTES;
  reply_entry(MSG_OPENED, req->stream, path, &st, NULL);
  task_queue(&reading->task, run);
}
