/* reply: the short answers. They work in the guest and in its forked workers alike. */
#ifndef ISLET_REPLY_H
#define ISLET_REPLY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "wire.h"

void reply_ok(uint32_t stream);
void reply_count(uint32_t stream, uint64_t count);
/* OK or OPENED (`type`) with one ENTRY. `target` is a symlink's, else NULL. */
void reply_entry(uint8_t type, uint32_t stream, const char *path, const struct stat *st, const char *target);
/* The same for what is at the path now; an ERROR with stage "stat" when nothing is. Symlinks are not followed. */
void reply_path(uint32_t stream, const char *path);
void reply_opened(uint32_t stream);
/* ERROR for a request that the guest itself refuses. */
void reply_error(uint32_t stream, int kind, const char *stage, const char *message);
void reply_no_memory(uint32_t stream);
/* ERROR for a system call that failed. `what` names its object, usually a path. */
void reply_errno(uint32_t stream, const char *stage, int err, const char *what);
/* The same for a path that is not the request's first: where a copy goes, or what is missing on the way there. */
void reply_errno_at(uint32_t stream, const char *stage, int err, const char *path);
/* As reply_errno, with a kind that the errno alone does not tell. */
void reply_failure(uint32_t stream, int kind, int err, const char *stage, const char *message);

/* Puts an ENTRY record under `tag`. */
void reply_put_entry(struct wire_out *out, uint8_t tag, const char *path, const struct stat *st, const char *target);

#endif
