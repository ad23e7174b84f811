#include "link/errors.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "message.h"

int error_kind(int err) {
  switch (err) {
    case ENOENT: return KIND_NOT_FOUND;
    case EEXIST: return KIND_EXISTS;
    case ENOTDIR: return KIND_NOT_DIRECTORY;
    case EISDIR: return KIND_IS_DIRECTORY;
    case ENOTEMPTY: return KIND_NOT_EMPTY;
    case EACCES:
    case EPERM:
    case EROFS:
    case EBUSY:
    case ETXTBSY: return KIND_DENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return KIND_NO_SPACE;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
    case EMLINK:
    case E2BIG: return KIND_LIMIT;
    case ENOEXEC: return KIND_NOT_EXECUTABLE;
    case ESRCH: return KIND_NO_PROCESS;
    case ECONNREFUSED: return KIND_REFUSED;
    case ENOSYS:
    case EOPNOTSUPP:
    case EXDEV: return KIND_UNSUPPORTED;
    case EINVAL:
    case ELOOP:
    case ENAMETOOLONG: return KIND_BAD_REQUEST;
    default: return KIND_IO;
  }
}

const char *error_name(int err) {
  const char *name = err == 0 ? "" : strerrorname_np(err);
  return name == NULL ? "" : name;
}
