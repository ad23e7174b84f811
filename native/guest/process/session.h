/*
 * session: signals whole sessions across their process groups, and kills commands with everything they started.
 *
 * Processes that leave their session (setsid, a daemon's double fork) are found by a mark: a number in the hard limit on
 * resident memory (RLIMIT_RSS), which no kernel enforces. Processes inherit it across fork, exec and a change of users, and
 * without CAP_SYS_RESOURCE can only lower it. A process that lowers it loses the mark and is found by its session alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sends the signal once to every member of the session. Returns 0, or the errno for its first process group. */
int session_signal(pid_t session, int signal);
/* A new mark for one command. 0 if the guest is not PID 1: there a mark could match processes of others. */
uint64_t session_new_mark(void);
/* Call it in the child, before exec. */
void session_set_mark(uint64_t mark);
/*
 * Sends SIGKILL repeatedly until no member of the session and no process with the mark is alive (mark 0: members only), then
 * calls process_session_gone.
 */
void session_kill(pid_t session, uint64_t mark);
/* Whether a session_kill of it is in progress. */
bool session_dying(pid_t session);

struct session_member {
  pid_t pid, parent, group, session;
  char state; /* as in /proc/PID/stat: Z is a zombie */
};
/* False: there is no such process. */
bool session_read(pid_t pid, struct session_member *member);
/* Calls `each` for every process in /proc. */
void session_scan(void (*each)(const struct session_member *member, void *arg), void *arg);
