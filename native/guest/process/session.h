/*
 * session: signals whole sessions, whatever process groups their members made, and kills commands with all that they started.
 *
 * What leaves its session (setsid, a daemon's double fork) is known by a mark: a number that every process inherits, as the hard
 * limit on resident memory, which no kernel enforces. Across exec, fork and a change of users it stays as it is. Without
 * CAP_SYS_RESOURCE it can only be lowered. A process that lowers it has no mark any more and is found by its session alone.
 */
#ifndef ISLET_SESSION_H
#define ISLET_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sends the signal once to every member of the session; an errno when not even its first group could be reached. */
int session_signal(pid_t session, int signal);
/* For one command of this guest; 0 where marks would reach strangers, that is, where the guest is not PID 1. */
uint64_t session_new_mark(void);
/* In the child, before it executes. */
void session_set_mark(uint64_t mark);
/*
 * SIGKILL, again and again until no member is left alive, nor anybody else with the mark (0: the members alone).
 * process_session_gone is called then.
 */
void session_kill(pid_t session, uint64_t mark);
/* A session_kill of it is still on its way. */
bool session_dying(pid_t session);

struct session_member {
  pid_t pid, parent, group, session;
  char state; /* as in /proc/PID/stat: Z is a zombie */
};
/* False: there is no such process. */
bool session_read(pid_t pid, struct session_member *member);
/* Calls `each` for every process in /proc. */
void session_scan(void (*each)(const struct session_member *member, void *arg), void *arg);

#endif
