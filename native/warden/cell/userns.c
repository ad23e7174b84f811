#include "cell/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup/cgroup.h"
#include "mount/cred.h"

/* The effective ids own the namespace; the real ids stay root's, because the kernel applies process limits by the real uid. */
static int become(uint32_t id) {
  if (setresgid((gid_t)-1, id, (gid_t)-1) < 0 || setresuid((uid_t)-1, id, (uid_t)-1) < 0) return -1;
  return cred_raise_all();
}

/*
 * Writes 0 or an errno to `answer`, then waits to be killed. On cgroup v1 the first move of a process between groups waits about
 * 10 ms for an RCU grace period, moves right after it do not. If the runtime is about to move a process, this one moves first.
 */
static _Noreturn void hold(uint32_t uid_base, bool moves, int answer) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  AUTO_CLOSE int group = moves ? cgroup_open_members() : -1;
  int err = become(uid_base) < 0 || unshare(CLONE_NEWUSER) < 0 ? errno : 0;
  if (write(answer, &err, sizeof err) != sizeof err) _exit(1);
  close(answer);
  if (group >= 0 && write(group, "0", 1) < 0) close_fd(&group); /* then the runtime waits instead */
  for (;;) pause();
}

static int write_map(pid_t holder, const char *name, uint32_t uid_base) {
  char path[48], map[48];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)holder, name);
  int length = snprintf(map, sizeof map, "0 %u %u", uid_base, UIDS_PER_SANDBOX);
  AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
  return fd >= 0 && write(fd, map, (size_t)length) == length ? 0 : -1;
}

int userns_make(uint32_t uid_base, bool moves, struct userns *userns, struct fail *fail) {
  int answers[2], err = EIO;
  if (pipe2(answers, O_CLOEXEC) < 0) return fail_errno(fail, "userns", "pipe");
  userns->holder = fork();
  if (userns->holder == 0) hold(uid_base, moves, answers[1]);
  close(answers[1]);
  ssize_t got = userns->holder < 0 ? -1 : read(answers[0], &err, sizeof err);
  close(answers[0]);
  if (userns->holder < 0) return fail_errno(fail, "userns", "fork");
  if (got == sizeof err && err == 0 && write_map(userns->holder, "uid_map", uid_base) == 0 &&
      write_map(userns->holder, "gid_map", uid_base) == 0) {
    return 0;
  }
  if (got == sizeof err && err != 0) errno = err;
  int result = fail_errno(fail, "userns", "make the namespace");
  userns_leave(userns);
  return result;
}

void userns_leave(const struct userns *userns) {
  kill(userns->holder, SIGKILL);
  while (waitpid(userns->holder, NULL, 0) < 0 && errno == EINTR) {
  }
}
