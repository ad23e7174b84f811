#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"
#include "process.h"

enum {
  SESSION_PASSES = 200,      /* then give up: what SIGKILL does not end in a second hangs in the kernel */
  SESSION_PASS_US = 5 * 1000,
};

struct killing {
  pid_t session;
  unsigned passes;
  struct loop_timer timer;
  struct killing *next;
};

struct reach {
  pid_t session;
  int signal;
  unsigned alive;
};

static struct killing *killings;

static bool kill_pass(pid_t session);
static void on_pass(struct loop_timer *timer);

static void signal_others(const struct session_member *member, void *arg) {
  struct reach *reach = arg;
  if (member->session != reach->session || member->group == reach->session) return;
  if (member->state != 'Z') kill(member->pid, reach->signal);
}

int session_signal(pid_t session, int signal) {
  /* The session's first process group at once, so that it is not reached one by one; then the others. */
  int err = kill(-session, signal) < 0 ? errno : 0;
  struct reach reach = {session, signal, 0};
  session_scan(signal_others, &reach);
  return err;
}

void session_kill(pid_t session) {
  if (session_dying(session) || kill_pass(session)) return;
  struct killing *killing = calloc(1, sizeof *killing);
  if (killing == NULL) return; /* one pass has reached all but what forked during it */
  killing->session = session;
  killing->next = killings;
  killings = killing;
  loop_timer_set(&killing->timer, SESSION_PASS_US / 5, on_pass);
}

bool session_dying(pid_t session) {
  for (struct killing *k = killings; k != NULL; k = k->next) {
    if (k->session == session) return true;
  }
  return false;
}

static void kill_member(const struct session_member *member, void *arg) {
  struct reach *reach = arg;
  if (member->session != reach->session || member->state == 'Z' || member->state == 'X') return;
  reach->alive++;
  kill(member->pid, SIGKILL);
}

/* True when nobody of the session is alive. */
static bool kill_pass(pid_t session) {
  struct reach reach = {session, SIGKILL, 0};
  kill(-session, SIGKILL);
  session_scan(kill_member, &reach);
  return reach.alive == 0;
}

static void on_pass(struct loop_timer *timer) {
  struct killing *killing = container_of(timer, struct killing, timer);
  pid_t session = killing->session;
  if (!kill_pass(session) && ++killing->passes < SESSION_PASSES) {
    loop_timer_set(timer, SESSION_PASS_US, on_pass);
    return;
  }
  struct killing **at = &killings;
  while (*at != killing) at = &(*at)->next;
  *at = killing->next;
  free(killing);
  process_session_gone(session);
}

/* PID (name) state parent group session ...; the name may hold anything, parentheses too. */
static bool read_member(int proc, const char *name, struct session_member *member) {
  char path[32], text[512];
  snprintf(path, sizeof path, "%.20s/stat", name);
  int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return false;
  text[n] = 0;
  const char *after = strrchr(text, ')');
  if (after == NULL) return false;
  member->pid = (pid_t)atoi(text);
  return sscanf(after + 1, " %c %d %d %d", &member->state, &member->parent, &member->group, &member->session) == 4;
}

bool session_read(pid_t pid, struct session_member *member) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d", (int)pid);
  return read_member(AT_FDCWD, path, member);
}

void session_scan(void (*each)(const struct session_member *member, void *arg), void *arg) {
  DIR *dir = opendir("/proc");
  if (dir == NULL) return;
  struct dirent *entry;
  while ((entry = readdir(dir)) != NULL) {
    struct session_member member;
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (read_member(dirfd(dir), entry->d_name, &member)) each(&member, arg);
  }
  closedir(dir);
}
