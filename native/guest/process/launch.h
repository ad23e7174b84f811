/* launch: starts a child process from a plan. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "user.h"

enum { LAUNCH_MAX_RLIMITS = 32 };

struct launch_rlimit {
  int resource;
  struct rlimit limit;
};

struct launch {
  char **argv, **env;
  const char *cwd;              /* "": the guest's */
  const struct user_ids *user;  /* NULL: as the guest */
  int stdin_fd, stdout_fd, stderr_fd;
  bool terminal;                /* stdin_fd becomes the controlling terminal of the session */
  struct launch_rlimit rlimits[LAUNCH_MAX_RLIMITS];
  size_t rlimit_count;
  uint64_t mark;                /* of session.h */
  /* After launch_process returned -1: the failed stage (PROTOCOL.md) and its errno. */
  const char *failed_stage;
  int failed_errno;
};

/* Boot: raises the guest's own limit on open files. Children get the original limit back. */
void launch_init(void);
/* The pid, after the program was executed; -1: it never ran. */
pid_t launch_process(struct launch *plan);
