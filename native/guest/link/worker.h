/*
 * worker: runs long file operations in a forked copy of the guest, so that they do not block the loop.
 *
 *     guest  <── frames (OPENED, DATA, ENTRIES, END, OK, ERROR) ──  worker
 *            ──  the server's DATA as plain bytes, end of file at END ──>
 *
 * over one socket pair. The worker calls link_send and reply_... as the guest does; the guest forwards the frames
 * under the stream's window. The worker's last frame is OK, ERROR or END. RESET kills it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stream;

/* Payload bytes of the largest frame a worker may send. */
enum { WORKER_MAX_PAYLOAD = 64 * 1024 };

/* Runs in the worker and sends the last frame. */
typedef void (*worker_job)(uint32_t stream, const void *arg);

/* `arg` may be on the caller's stack: the forked worker has a copy. NULL: the worker could not start and ERROR was sent. */
struct stream *worker_start(uint32_t stream, worker_job job, const void *arg, bool takes_data);
/* In the worker: reads `length` bytes of the server's DATA; fewer only at the end of the data. */
size_t worker_read(void *buffer, size_t length);

/* A child was reaped that is not in the process table. */
void worker_reaped(pid_t pid);
