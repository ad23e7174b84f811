/*
 * worker: runs long file work in a forked copy of the guest, so that nothing waits for it.
 *
 *     guest  <── frames (OPENED, DATA, ENTRIES, END, OK, ERROR) ──  worker
 *            ──  the server's DATA as plain bytes, end of file at END ──>
 *
 * over one socket pair. The worker sends with link_send and reply_... as the guest does; the guest passes the frames
 * on under the stream's window. Its last frame is OK, ERROR or END. RESET kills it.
 */
#ifndef ISLET_WORKER_H
#define ISLET_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stream;

/* Payload bytes of the largest frame a worker may send. */
enum { WORKER_MAX_PAYLOAD = 64 * 1024 };

/* Runs in the worker and sends the last frame. */
typedef void (*worker_job)(uint32_t stream, const void *arg);

/* `arg` may be on the caller's stack: the worker has its own copy. NULL: it cannot start, and ERROR has been sent. */
struct stream *worker_start(uint32_t stream, worker_job job, const void *arg, bool takes_data);
/* In the worker: fills the buffer from the server's DATA; less only at its end. */
size_t worker_read(void *buffer, size_t length);

/* A child of the guest was reaped that is no process. */
void worker_reaped(pid_t pid);

#endif
