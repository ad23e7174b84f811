#include "link/reply.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/errors.h"
#include "link/link.h"
#include "message.h"

enum {
  REPLY_MESSAGE = 1024,                 /* longest message of an ERROR; longer ones are cut */
  REPLY_ENTRY = 2 * (PATH_MAX + 64) + 128,
};
static const int64_t REPLY_MAX_SECONDS = 253402300799; /* the end of the year 9999 */

void reply_ok(uint32_t stream) {
  link_send(MSG_OK, stream, NULL, 0);
}

void reply_opened(uint32_t stream) {
  link_send(MSG_OPENED, stream, NULL, 0);
}

void reply_count(uint32_t stream, uint64_t count) {
  struct wire_out out = WIRE_OUT(32);
  wire_put_u64(&out, OK_count, count);
  link_send(MSG_OK, stream, out.buf, out.len);
}

void reply_entry(uint8_t type, uint32_t stream, const char *path, const struct stat *st, const char *target) {
  struct wire_out out = WIRE_OUT(REPLY_ENTRY);
  _Static_assert((int)OK_entry == (int)OPENED_entry, "OK and OPENED carry the entry under one tag");
  reply_put_entry(&out, OK_entry, path, st, target);
  link_send(type, stream, out.buf, out.len);
}

void reply_path(uint32_t stream, const char *path) {
  struct stat st;
  char target[PATH_MAX];
  if (lstat(path, &st) < 0) {
    reply_errno(stream, "stat", errno, path);
    return;
  }
  ssize_t n = S_ISLNK(st.st_mode) ? readlink(path, target, sizeof target - 1) : -1;
  if (n >= 0) target[n] = 0;
  reply_entry(MSG_OK, stream, path, &st, n >= 0 ? target : NULL);
}

/* A file's time can be any number of seconds; clamps it to dates between 1970 and 9999. */
static uint64_t modified_ms(const struct stat *st) {
  int64_t seconds = st->st_mtim.tv_sec;
  if (seconds < 0) return 0;
  if (seconds > REPLY_MAX_SECONDS) seconds = REPLY_MAX_SECONDS;
  int64_t nanoseconds = st->st_mtim.tv_nsec;
  if (nanoseconds < 0 || nanoseconds > 999999999) nanoseconds = 0;
  return (uint64_t)(seconds * 1000 + nanoseconds / 1000000);
}

void reply_put_entry(struct wire_out *out, uint8_t tag, const char *path, const struct stat *st, const char *target) {
  mode_t mode = st->st_mode;
  uint32_t type = S_ISREG(mode)   ? ENTRY_FILE
                  : S_ISDIR(mode) ? ENTRY_DIRECTORY
                  : S_ISLNK(mode) ? ENTRY_SYMLINK
                                  : ENTRY_OTHER;
  size_t mark = wire_begin(out, tag);
  wire_put_str(out, ENTRY_path, path);
  wire_put_u32(out, ENTRY_type, type);
  wire_put_u64(out, ENTRY_size, (uint64_t)st->st_size);
  wire_put_u32(out, ENTRY_mode, mode & 07777);
  wire_put_u32(out, ENTRY_uid, st->st_uid);
  wire_put_u32(out, ENTRY_gid, st->st_gid);
  wire_put_u64(out, ENTRY_mtime_ms, modified_ms(st));
  if (target != NULL) wire_put_str(out, ENTRY_target, target);
  wire_end(out, mark);
}

static void send_error(uint32_t stream, int kind, int err, const char *stage, const char *message, const char *path) {
  struct wire_out out = WIRE_OUT(REPLY_MESSAGE + PATH_MAX + 256);
  wire_put_u32(&out, ERROR_kind, (uint32_t)kind);
  wire_put_str(&out, ERROR_errno_name, error_name(err));
  wire_put_str(&out, ERROR_stage, stage);
  wire_put_bytes(&out, ERROR_message, message, strnlen(message, REPLY_MESSAGE));
  if (path != NULL) wire_put_bytes(&out, ERROR_path, path, strnlen(path, PATH_MAX - 1));
  link_send(MSG_ERROR, stream, out.buf, out.len);
}

void reply_failure(uint32_t stream, int kind, int err, const char *stage, const char *message) {
  send_error(stream, kind, err, stage, message, NULL);
}

void reply_error(uint32_t stream, int kind, const char *stage, const char *message) {
  reply_failure(stream, kind, 0, stage, message);
}

void reply_no_memory(uint32_t stream) {
  reply_error(stream, KIND_LIMIT, "request", "no memory");
}

void *reply_calloc(uint32_t stream, size_t size) {
  void *memory = calloc(1, size);
  if (memory == NULL) reply_no_memory(stream);
  return memory;
}

static void send_errno(uint32_t stream, const char *stage, int err, const char *what, const char *path) {
  char message[REPLY_MESSAGE];
  snprintf(message, sizeof message, "%.900s: %s", what, strerror(err));
  send_error(stream, error_kind(err), err, stage, message, path);
}

void reply_errno(uint32_t stream, const char *stage, int err, const char *what) {
  send_errno(stream, stage, err, what, NULL);
}

void reply_errno_at(uint32_t stream, const char *stage, int err, const char *path) {
  send_errno(stream, stage, err, path, path);
}
