#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "warden.h"

static uint32_t kind_of(int err) {
  switch (err) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
      return KIND_NOT_FOUND;
    case EEXIST:
      return KIND_EXISTS;
    case ENOSPC:
    case EDQUOT:
      return KIND_NO_SPACE;
    case EPERM:
    case EACCES:
      return KIND_DENIED;
    case ENOSYS:
    case EOPNOTSUPP:
      return KIND_UNSUPPORTED;
    case EBUSY:
      return KIND_BUSY;
    default:
      return KIND_SYSTEM;
  }
}

int fail_errno(struct fail *fail, const char *stage, const char *format, ...) {
  int err = errno;
  va_list args;
  va_start(args, format);
  vsnprintf(fail->message, sizeof fail->message, format, args);
  va_end(args);
  fail->kind = kind_of(err);
  fail->err = err;
  fail->stage = stage;
  return -1;
}

int fail_kind(struct fail *fail, uint32_t kind, const char *stage, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(fail->message, sizeof fail->message, format, args);
  va_end(args);
  fail->kind = kind;
  fail->err = 0;
  fail->stage = stage;
  return -1;
}

uint64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}
