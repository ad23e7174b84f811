/* cell: the sandbox's first process and its namespaces, held open so that a reused pid can never take its place. */
#pragma once

#include "warden.h"

enum { MAX_CARRIED = 5 };

struct cell {
  int pidfd;
  int proc_fd; /* /proc/<pid> of exactly this process; reads fail when it is gone */
  int user_ns, mount_ns, uts_ns, net_ns;
  const char *carried[MAX_CARRIED]; /* top-level mounts to move into the new root: proc, dev, sys, tmp, .islet */
  unsigned carrieds;
};

/* Opens the process and checks that its uid and gid maps are exactly `0 <uid_base> 65536`. */
int cell_open(uint32_t pid, uint32_t uid_base, struct cell *cell, struct fail *fail);
