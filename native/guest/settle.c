#include "settle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Language runtimes size their heaps by these files. The real limit is the sandbox's cgroup on the host. */
#define MEMORY_FILE "/sys/fs/cgroup/memory/memory.limit_in_bytes"
#define PIDS_FILE "/sys/fs/cgroup/pids/pids.max"

static int write_limit(const char *path, const char *value) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  int result = fd >= 0 && write(fd, value, strlen(value)) >= 0 ? 0 : 1;
  if (fd >= 0) close(fd);
  return result;
}

void settle_from_environment(void) {
  const char *memory = getenv("ISLET_MEMORY_MAX"), *pids = getenv("ISLET_PIDS_MAX");
  if (memory != NULL || pids != NULL) unlink("/tmp/.islet-placeholder"); /* written by the warden's cell/runsc.c */
  if (memory != NULL) write_limit(MEMORY_FILE, memory);
  if (pids != NULL) write_limit(PIDS_FILE, pids);
}

int settle(int count, char **pairs) {
  int result = 0;
  for (int i = 0; i + 1 < count; i += 2) {
    const char *name = pairs[i], *value = pairs[i + 1];
    int failed = 1;
    if (strcmp(name, "--hostname") == 0) failed = sethostname(value, strlen(value)) < 0;
    if (strcmp(name, "--memory") == 0) failed = write_limit(MEMORY_FILE, value);
    if (strcmp(name, "--pids") == 0) failed = write_limit(PIDS_FILE, value);
    if (failed) {
      fprintf(stderr, "guest: cannot set %s\n", name);
      result = 1;
    }
  }
  return result;
}
