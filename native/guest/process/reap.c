#include "process/reap.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/loop.h"
#include "link/worker.h"
#include "process/machine.h"
#include "process/process.h"

enum { REAP_PER_TURN = 512 }; /* many dying orphans must not block the loop */

static struct loop_source signals = {.fd = -1};
static struct loop_timer again;

static void on_again(struct loop_timer *timer) {
  (void)timer;
  reap_turn();
}

static void ready(struct loop_source *source, uint32_t events) {
  (void)events;
  struct signalfd_siginfo info[8];
  bool end = false;
  ssize_t n = read(source->fd, info, sizeof info);
  for (ssize_t i = 0; i < n / (ssize_t)sizeof info[0]; i++) end = end || info[i].ssi_signo == SIGTERM;
  reap_turn();
  if (end && getpid() != 1) machine_end();
}

bool reap_init(void) {
  sigset_t all, wanted;
  sigfillset(&all);
  if (sigprocmask(SIG_SETMASK, &all, NULL) < 0) return false;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  sigaddset(&wanted, SIGTERM);
  signals = (struct loop_source){.fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK), .ready = ready};
  return signals.fd >= 0 && loop_wait(&signals, EPOLLIN);
}

bool reap_turn(void) {
  for (int i = 0; i < REAP_PER_TURN; i++) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0) return true;
    if (pid < 0) return errno != ECHILD;
    if (!process_reaped(pid, status)) worker_reaped(pid);
  }
  loop_timer_set(&again, 0, on_again);
  return true;
}
