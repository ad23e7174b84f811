/* session: signals whole sessions, whatever process groups their members made. */
#ifndef ISLET_SESSION_H
#define ISLET_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

/* Sends the signal once to every member of the session; an errno when not even its first group could be reached. */
int session_signal(pid_t session, int signal);
/* SIGKILL, again and again until no member is left alive. process_session_gone is called then. */
void session_kill(pid_t session);
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
