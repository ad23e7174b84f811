/*
 * The guest: PID 1 of a sandbox, or an ordinary child process if the engine has no wall.
 *
 *     guest [--socket PATH]
 *     guest --settle [--hostname NAME] [--memory BYTES] [--pids N]
 *     guest --version                  prints the generation of the protocol
 *
 * --settle sets a sandbox's name and limits from inside and exits; see settle.h. Started under the name islet-signal, this
 * program is a command for users: islet_signal.c.
 *
 * The guest exits with an error only at boot, in this file. After that every failure is a frame to the server.
 */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "islet_signal.h"
#include "link/link.h"
#include "link/loop.h"
#include "link/task.h"
#include "message.h"
#include "process/launch.h"
#include "process/reap.h"
#include "settle.h"

enum { NO_GROUP = 65534 };

#define DEFAULT_SOCKET "/.islet/link.sock"

static void die(const char *message) __attribute__((noreturn));
static void die(const char *message) {
  fprintf(stderr, "guest: %s\n", message);
  exit(1);
}

static const char *read_arguments(int argc, char **argv) {
  const char *socket = DEFAULT_SOCKET;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--socket") == 0 && i + 1 < argc) socket = argv[++i];
    else die("usage: guest [--socket PATH]");
  }
  return socket;
}

/* Drops inherited fds, signal handlers and umask, so that the programs it starts do not get them. */
static void forget_inheritance(void) {
  int fd;
  while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd < 3) {} /* makes sure that 0 to 2 are open */
  syscall(SYS_close_range, 3u, ~0u, 0u);
  for (int i = 1; i < NSIG; i++) signal(i, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  umask(022);
  if (chdir("/") < 0) die("cannot change to /");
}

/*
 * A process may change another one's limits (prlimit), trace it, or take its files only if all its user and group ids match.
 * PID 1 therefore gets a saved group id that differs from its other group ids: no process inside, not even root, matches it.
 * Programs that the guest starts lose the saved group id at exec.
 */
static void stand_apart(void) {
  if (getpid() == 1 && syscall(SYS_setresgid, -1, -1, NO_GROUP) < 0) die("cannot take another saved group");
  /* An executable that its user may not read makes the process undumpable, and then it could not write to its own /proc/self. */
  prctl(PR_SET_DUMPABLE, 1);
}

/* Gives memory back: most sandboxes are idle most of the time. */
static void on_idle(void) {
  link_idle();
  malloc_trim(0);
}

static bool after_turn(void) {
  bool input_waits = link_take();
  task_turn();
  link_flush();
  return link_room() && (input_waits || task_waiting());
}

int main(int argc, char **argv) {
  if (argc > 0 && strcmp(basename(argv[0]), "islet-signal") == 0) return islet_signal(argc, argv);
  if (argc == 2 && strcmp(argv[1], "--version") == 0) return printf("guest %d\n", GENERATION) < 0;
  if (argc > 1 && strcmp(argv[1], "--settle") == 0) return settle(argc - 2, argv + 2);
  const char *socket = read_arguments(argc, argv);
  forget_inheritance();
  stand_apart();
  settle_from_environment();
  launch_init();
  if (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) die("cannot become a subreaper");
  if (!loop_init()) die("cannot make an epoll loop");
  if (!reap_init()) die("cannot take signals");
  if (!link_start(socket)) die("the socket's path is too long");
  loop_run(after_turn, on_idle);
}
