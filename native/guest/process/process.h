/*
 * process: the records of started processes. They outlive connections, until FORGET.
 *
 *     RUNNING ──main process reaped──> EXITED ──pipes read, 50 ms over, session dead──> ENDED ──FORGET──> gone
 *
 * output.c moves what the process prints to the server, input.c the other way, spawn.c starts it, control.c
 * serves the requests about it; this file owns the table and the states.
 */
#ifndef ISLET_PROCESS_H
#define ISLET_PROCESS_H

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
  int status; /* as waitpid tells */
  bool terminal;
  bool timed_out;
  uint64_t mark;     /* of all that it starts; see session.h */
  bool ends_session; /* what is left of its session when it has exited is killed */
  uint64_t started_us, exited_us;
  struct loop_timer timeout; /* kills; after the exit: ends the drain */
  struct output output;
  struct input input;
  struct stream stream;  /* its one reader; open says whether there is one */
  struct task sender;    /* sends OUTPUT, then EXITED, to the reader */
  struct loop_timer quiet; /* while armed SPAWNED is still to be sent, before anything else */
  bool exit_sent;        /* to this reader */
  struct process *next_by_id, *next_by_pid;
};

struct process *process_find(const char *id);
/* A new record without fds, not in the table yet. NULL: too many, or no memory. */
struct process *process_new(const char *id);
/* It runs: from now on it is in the table. timeout_us 0: none. SPAWNED is sent with what comes first, or after quiet_us. */
void process_started(struct process *process, pid_t pid, uint64_t started_us, uint64_t timeout_us, uint64_t quiet_us);
/* For a record that never ran. */
void process_discard(struct process *process);

/* Makes the stream the process's reader, from its output offset `from` on. False: ERROR has been sent. */
bool process_attach(struct process *process, uint32_t stream, uint64_t from);

/* A child of the guest was reaped. False: no process of this table. */
bool process_reaped(pid_t pid, int status);
/* Something that may let an exited process end has changed: its output, the clock, its session. */
void process_settle(struct process *process);
/* The session has been killed to the last member. */
void process_session_gone(pid_t session);
/* Drops all records and kills nothing. */
void process_forget_all(void);

/* Puts a PROCESS record under `tag`. */
void process_put(struct wire_out *out, uint8_t tag, const struct process *process);
/* Calls `each` for all. */
void process_each(void (*each)(struct process *process, void *arg), void *arg);

#endif
