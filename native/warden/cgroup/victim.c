/*
 * The victim of the OOM killer. When all sandboxes together reach their memory ceiling, the kernel kills the process with the most memory.
 * Under gVisor the memory of programs is not mapped by any process that the kernel can see, so the kernel may kill an innocent sandbox. While
 * memory is short, this raises oom_score_adj of every process in the group that uses the most memory.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup/cgroup.h"
#include "paths.h"

enum {
  SHORT_PERCENT = 75, /* of the ceiling */
  FIRST = 500,        /* added to oom_score_adj, in thousandths of the ceiling; the order within a group stays the same */
};

static char first[MAX_NAME + 1];

/* The memory that the kernel cannot reclaim; 0 if it cannot be more than `least`. */
static uint64_t needed(int dir, bool v2, uint64_t least) {
  char text[8192];
  uint64_t used = cgroup_number(dir, v2 ? "memory.current" : "memory.usage_in_bytes");
  if (used <= least || cgroup_read(dir, "memory.stat", text, sizeof text) < 0) return 0;
  uint64_t files = cgroup_keyed(text, v2 ? "inactive_file" : "total_inactive_file") + cgroup_keyed(text, v2 ? "active_file" : "total_active_file");
  return used > files ? used - files : 0;
}

/* Adds or removes the bonus of one process; doing it twice changes nothing. */
static void put_process(int pid, const char *name, bool is_first) {
  char path[32], text[16] = "";
  snprintf(path, sizeof path, "/proc/%d", pid);
  AUTO_CLOSE int proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  AUTO_CLOSE int fd = proc < 0 || !cgroup_has(proc, name) ? -1 : openat(proc, "oom_score_adj", O_RDWR | O_CLOEXEC);
  if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) return;
  int score = atoi(text);
  if ((score >= FIRST) == is_first) return;
  int length = snprintf(text, sizeof text, "%d", is_first ? score + FIRST : score - FIRST);
  if (pwrite(fd, text, (size_t)length, 0) < 0) return; /* it has ended */
}

static void put(int parent, const char *name, bool is_first) {
  AUTO_CLOSE int dir = path_open_dir(parent, name);
  AUTO_CLOSE_FILE FILE *file = dir < 0 ? NULL : io_take_file(path_open(dir, "cgroup.procs", O_RDONLY));
  int pid;
  while (file != NULL && fscanf(file, "%d", &pid) == 1) {
    if (pid > 1) put_process(pid, name, is_first);
  }
}

/* The name of the group that needs most memory. */
static void largest(int parent, bool v2, char *name) {
  uint64_t most = 0;
  AUTO_CLOSE_DIR DIR *groups = cgroup_open_groups(parent);
  struct dirent *entry;
  while ((entry = cgroup_next_group(groups)) != NULL) {
    if (strlen(entry->d_name) > MAX_NAME) continue;
    AUTO_CLOSE int dir = path_open_dir(parent, entry->d_name);
    uint64_t bytes = dir < 0 ? 0 : needed(dir, v2, most);
    if (bytes <= most) continue;
    most = bytes;
    strcpy(name, entry->d_name);
  }
}

void cgroup_choose_victim(void) {
  struct fail ignored;
  bool v2;
  char name[MAX_NAME + 1] = "";
  AUTO_CLOSE int parent = cgroup_dir("", CGROUP_MEMORY, &v2, &ignored);
  if (parent < 0) return;
  uint64_t shortage = cgroup_number(parent, v2 ? "memory.max" : "memory.limit_in_bytes") / 100 * SHORT_PERCENT;
  if (shortage > 0 && needed(parent, v2, shortage) > shortage) largest(parent, v2, name);
  if (first[0] != 0 && strcmp(first, name) != 0) put(parent, first, false);
  if (name[0] != 0) put(parent, name, true);
  strcpy(first, name);
}
