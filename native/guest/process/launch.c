#include "process/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/session.h"

#define LAUNCH_OOM_SCORE "300"
#define LAUNCH_DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static struct rlimit original_files;
static bool have_original_files;

static void child(struct launch *plan) __attribute__((noreturn));

void launch_init(void) {
  struct rlimit raised;
  have_original_files = getrlimit(RLIMIT_NOFILE, &original_files) == 0;
  if (!have_original_files) return;
  raised = original_files;
  raised.rlim_cur = raised.rlim_max;
  setrlimit(RLIMIT_NOFILE, &raised); /* if it fails the guest serves fewer processes */
}

/*
 * vfork: the child runs in the guest's memory until it executes, so nothing is copied and a failure is written straight
 * into the plan. All signals are blocked in the guest, so no handler can run in the shared memory. When the child changes
 * users the kernel makes the memory undumpable, so that user cannot trace it.
 */
pid_t launch_process(struct launch *plan) {
  plan->failed_stage = NULL;
  pid_t pid = vfork();
  if (pid == 0) child(plan);
  if (pid < 0) {
    plan->failed_stage = "fork";
    plan->failed_errno = errno;
  }
  return *(const char *volatile *)&plan->failed_stage == NULL ? pid : -1;
}

static void fail(struct launch *plan, const char *stage) __attribute__((noreturn));
static void fail(struct launch *plan, const char *stage) {
  plan->failed_errno = errno;
  *(const char *volatile *)&plan->failed_stage = stage;
  _exit(127);
}

static void prefer_for_oom_killer(void) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, LAUNCH_OOM_SCORE, strlen(LAUNCH_OOM_SCORE)) < 0) {} /* optional */
  close(fd);
}

/* The fds may be any numbers, 0 to 2 among them; all are close-on-exec. */
static bool set_stdio(const struct launch *plan) {
  int from[3] = {plan->stdin_fd, plan->stdout_fd, plan->stderr_fd};
  for (int i = 0; i < 3; i++) {
    if (from[i] < 3 && (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 3)) < 0) return false;
  }
  for (int i = 0; i < 3; i++) {
    if (dup2(from[i], i) < 0) return false;
  }
  return true;
}

static bool become_user(const struct user_ids *user) {
  /* Bare system calls: libc's versions synchronise threads, in memory that the child shares with the guest. */
  return syscall(SYS_setgroups, user->group_count, user->groups) == 0 &&
         syscall(SYS_setresgid, user->gid, user->gid, user->gid) == 0 &&
         syscall(SYS_setresuid, user->uid, user->uid, user->uid) == 0;
}

/* Returns only on failure, with the most useful errno. */
static void execute(char **argv, char **env) {
  const char *name = argv[0];
  if (strchr(name, '/') != NULL) {
    execve(name, argv, env);
    return;
  }
  const char *path = LAUNCH_DEFAULT_PATH;
  for (char **e = env; *e != NULL; e++) {
    if (strncmp(*e, "PATH=", 5) == 0) path = *e + 5;
  }
  size_t name_length = strlen(name);
  int telling = ENOENT;
  char file[PATH_MAX];
  for (;;) {
    size_t length = strcspn(path, ":");
    if (name_length > 0 && length + 1 + name_length < sizeof file) {
      memcpy(file, path, length);
      if (length > 0) file[length++] = '/'; /* an empty piece is the current directory */
      memcpy(file + length, name, name_length + 1);
      execve(file, argv, env);
      if (errno == EACCES) telling = EACCES;
      else if (errno != ENOENT && errno != ENOTDIR) return;
    }
    path += strcspn(path, ":");
    if (*path++ == 0) break;
  }
  errno = telling;
}

static void child(struct launch *plan) {
  if (setsid() < 0) fail(plan, "fork");
  if (!set_stdio(plan)) fail(plan, "stdio");
  if (plan->terminal && ioctl(0, TIOCSCTTY, 0) < 0) fail(plan, "pty");
  prefer_for_oom_killer();
  if (have_original_files) setrlimit(RLIMIT_NOFILE, &original_files);
  for (size_t i = 0; i < plan->rlimit_count; i++) {
    if (setrlimit((__rlimit_resource_t)plan->rlimits[i].resource, &plan->rlimits[i].limit) < 0) fail(plan, "rlimit");
  }
  session_set_mark(plan->mark);
  if (plan->user != NULL && !become_user(plan->user)) fail(plan, "user");
  if (plan->cwd[0] != 0 && chdir(plan->cwd) < 0) fail(plan, "cwd");
  /* The guest ignores SIGPIPE and blocks all signals; its other handlers are the defaults. */
  signal(SIGPIPE, SIG_DFL);
  syscall(SYS_close_range, 3u, ~0u, 0u); /* kernels without it rely on close-on-exec */
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execute(plan->argv, plan->env);
  fail(plan, "exec");
}
