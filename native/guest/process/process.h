/*
 * process: the records of started processes. They outlive connections, until FORGET.
 *
 *     RUNNING ──main process reaped──> EXITED ──pipes read, 50 ms over, session dead──> ENDED ──FORGET──> gone
 *
 * output.c moves what the process prints to the server, input.c the other way, spawn.c starts it, control.c
 * serves the requests about it; this file owns the table and the states.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "link/loop.h"
#include "link/stream.h"
#include "link/task.h"
#include "message.h"
#include "process/input.h"
#include "process/output.h"

enum process_state { PROCESS_RUNNING, PROCESS_EXITED, PROCESS_ENDED };

struct process {
  char id[MAX_ID + 1];
  pid_t pid; /* of the main process; also its session and process group */
  enum process_state state;
  int status; /* from waitpid */
  bool terminal;
  bool timed_out;
  uint64_t mark;     /* inherited by everything it starts; see session.h */
  bool ends_session; /* kill the rest of its session when it exits */
  uint64_t started_us, exited_us;
  struct loop_timer timeout; /* kills the process; after the exit it ends the drain */
  struct output output;
  struct input input;
  struct stream stream;  /* its only reader; not open: none */
  struct task sender;    /* sends OUTPUT, then EXITED, to the reader */
  struct loop_timer quiet; /* while armed, SPAWNED has not been sent; it must be the first frame */
  bool exit_sent;        /* to this reader */
  struct process *next_by_id, *next_by_pid;
};

struct process *process_find(const char *id);
/* A new record without fds, not in the table yet. NULL: too many records, or no memory. */
struct process *process_new(const char *id);
/* Enters a started process in the table. timeout_us 0: none. SPAWNED is sent before the first other frame, or after quiet_us. */
void process_started(struct process *process, pid_t pid, uint64_t started_us, uint64_t timeout_us, uint64_t quiet_us);
/* Frees the record of a process that never ran. */
void process_discard(struct process *process);

/* Makes the stream the process's reader, from its output offset `from` on. False: ERROR has been sent. */
bool process_attach(struct process *process, uint32_t stream, uint64_t from);

/* A child of the guest was reaped. False: it is not in the table. */
bool process_reaped(pid_t pid, int status);
/* Call it when output, the drain timer or the session of a process changed: an exited process may now be ENDED. */
void process_settle(struct process *process);
/* All members of the session are dead. */
void process_session_gone(pid_t session);
/* Drops all records and kills nothing. */
void process_forget_all(void);

/* Puts a PROCESS record under `tag`. */
void process_put(struct wire_out *out, uint8_t tag, const struct process *process);
/* Calls `each` for all. */
void process_each(void (*each)(struct process *process, void *arg), void *arg);
