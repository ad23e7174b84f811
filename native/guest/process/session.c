#include "process/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io.h"
#include "link/loop.h"
#include "process/process.h"

enum {
  SESSION_PASSES = 200,      /* then give up: a process that survives SIGKILL for a second hangs in the kernel */
  SESSION_PASS_US = 5 * 1000,
};

/* Larger than any memory, so programs that look at the limit (sort, gcc) see none. */
static const uint64_t FIRST_MARK = (uint64_t)1 << 62;

struct killing {
  pid_t session;
  uint64_t mark;
  unsigned passes;
  struct loop_timer timer;
  struct killing *next;
};

struct reach {
  pid_t session;
  uint64_t mark;
  int signal;
  unsigned alive;
};

static struct killing *killings;

static bool kill_pass(pid_t session, uint64_t mark);
static void on_pass(struct loop_timer *timer);

static void signal_others(const struct session_member *member, void *arg) {
  struct reach *reach = arg;
  if (member->session != reach->session || member->group == reach->session) return;
  if (member->state != 'Z') kill(member->pid, reach->signal);
}

int session_signal(pid_t session, int signal) {
  /* The session's first process group in one call, then the members of other groups one by one. */
  int err = kill(-session, signal) < 0 ? errno : 0;
  struct reach reach = {session, 0, signal, 0};
  session_scan(signal_others, &reach);
  return err;
}

uint64_t session_new_mark(void) {
  static uint64_t count;
  return getpid() == 1 ? FIRST_MARK - ++count : 0;
}

void session_set_mark(uint64_t mark) {
  const struct rlimit limit = {mark, mark};
  if (mark != 0) setrlimit(RLIMIT_RSS, &limit); /* if it fails, processes that leave the session are not found */
}

void session_kill(pid_t session, uint64_t mark) {
  if (session_dying(session) || kill_pass(session, mark)) return;
  struct killing *killing = calloc(1, sizeof *killing);
  if (killing == NULL) return; /* the one pass reached everything except processes forked during it */
  killing->session = session;
  killing->mark = mark;
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

static uint64_t mark_of(pid_t pid) {
  char path[32], text[4096];
  snprintf(path, sizeof path, "/proc/%d/limits", (int)pid);
  io_take_text(open(path, O_RDONLY | O_CLOEXEC), text, sizeof text);
  const char *line = strstr(text, "\nMax resident set ");
  unsigned long long hard = 0;
  return line != NULL && sscanf(line, " Max resident set %*s %llu", &hard) == 1 ? hard : 0;
}

static void kill_member(const struct session_member *member, void *arg) {
  struct reach *reach = arg;
  if (member->state == 'Z' || member->state == 'X') return;
  if (member->session != reach->session && (reach->mark == 0 || mark_of(member->pid) != reach->mark)) return;
  reach->alive++;
  kill(member->pid, SIGKILL);
}

/* True if none of them is alive. */
static bool kill_pass(pid_t session, uint64_t mark) {
  struct reach reach = {session, mark, SIGKILL, 0};
  kill(-session, SIGKILL);
  session_scan(kill_member, &reach);
  return reach.alive == 0;
}

static void on_pass(struct loop_timer *timer) {
  struct killing *killing = container_of(timer, struct killing, timer);
  pid_t session = killing->session;
  if (!kill_pass(session, killing->mark) && ++killing->passes < SESSION_PASSES) {
    loop_timer_set(timer, SESSION_PASS_US, on_pass);
    return;
  }
  struct killing **at = &killings;
  while (*at != killing) at = &(*at)->next;
  *at = killing->next;
  free(killing);
  process_session_gone(session);
}

/* Parses "PID (name) state parent group session ..."; the name may contain parentheses. */
static bool read_member(int proc, const char *name, struct session_member *member) {
  char path[32], text[512];
  snprintf(path, sizeof path, "%.20s/stat", name);
  if (io_take_text(openat(proc, path, O_RDONLY | O_CLOEXEC), text, sizeof text) <= 0) return false;
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
  AUTO_CLOSE_DIR DIR *dir = opendir("/proc");
  struct dirent *entry;
  while ((entry = io_next_entry(dir)) != NULL) {
    struct session_member member;
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (read_member(dirfd(dir), entry->d_name, &member)) each(&member, arg);
  }
}
