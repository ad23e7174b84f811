/* reply: the short answers, for the guest and its forked workers. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "wire.h"

void reply_ok(uint32_t stream);
void reply_count(uint32_t stream, uint64_t count);
/* OK or OPENED (`type`) with one ENTRY. `target` is the target of a symlink, else NULL. */
void reply_entry(uint8_t type, uint32_t stream, const char *path, const struct stat *st, const char *target);
/* OK with the entry at the path, or an ERROR with stage "stat". Symlinks are not followed. */
void reply_path(uint32_t stream, const char *path);
void reply_opened(uint32_t stream);
/* ERROR for a request that the guest itself refuses. */
void reply_error(uint32_t stream, int kind, const char *stage, const char *message);
void reply_no_memory(uint32_t stream);
/* calloc of one object; NULL after reply_no_memory. */
void *reply_calloc(uint32_t stream, size_t size);
/* ERROR for a system call that failed. `what` names its object, usually a path. */
void reply_errno(uint32_t stream, const char *stage, int err, const char *what);
/* The same, and names the path in the ERROR because it is not the path of the request: the target of a copy, a missing parent. */
void reply_errno_at(uint32_t stream, const char *stage, int err, const char *path);
/* As reply_errno, with a kind that does not follow from the errno. */
void reply_failure(uint32_t stream, int kind, int err, const char *stage, const char *message);

/* Puts an ENTRY record under `tag`. */
void reply_put_entry(struct wire_out *out, uint8_t tag, const char *path, const struct stat *st, const char *target);
