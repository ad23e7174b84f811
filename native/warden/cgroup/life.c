/* Freezes, kills, deletes, lists and measures groups. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cgroup/cgroup.h"
#include "mount/release.h"
#include "paths.h"

enum {
  FREEZE_US = 5 * 1000 * 1000,  /* a task in an uninterruptible sleep can delay a freeze */
  KILL_US = 10 * 1000 * 1000,
  DELETE_US = 2 * 1000 * 1000,  /* dead tasks leave their groups a little later */
  MAX_DEPTH = 16,               /* levels of groups below a sandbox's own */
};

/* Whether the group is frozen, or thawed, completely; on v1 it may be neither for a while. */
static bool is_state(int dir, bool v2, bool frozen) {
  char text[256];
  if (v2) return cgroup_read(dir, "cgroup.events", text, sizeof text) == 0 && cgroup_keyed(text, "frozen") == frozen;
  return cgroup_read(dir, "freezer.state", text, sizeof text) == 0 && strcmp(text, frozen ? "FROZEN\n" : "THAWED\n") == 0;
}

static int write_frozen(int dir, bool v2, bool frozen) {
  if (v2) return cgroup_write(dir, "cgroup.freeze", frozen ? "1" : "0");
  return cgroup_write(dir, "freezer.state", frozen ? "FROZEN" : "THAWED");
}

int cgroup_freeze(const char *name, bool frozen, struct fail *fail) {
  bool v2;
  AUTO_CLOSE int dir = cgroup_dir(name, CGROUP_FREEZER, &v2, fail);
  if (dir < 0) return -1;
  uint64_t deadline = now_us() + FREEZE_US;
  unsigned round = 0;
  do {
    /* Written in every round: v1 may stay in FREEZING if a task forks meanwhile; a write makes it retry. */
    if (write_frozen(dir, v2, frozen) < 0) return fail_errno(fail, "freeze", "group %s", name);
    if (is_state(dir, v2, frozen)) return 0;
  } while (cgroup_wait(deadline, &round));
  if (frozen) write_frozen(dir, v2, false);
  return fail_kind(fail, KIND_BUSY, "freeze", "group %s did not %s in time", name, frozen ? "freeze" : "thaw");
}

bool cgroup_has(int proc, const char *name) {
  char text[4096], path[2 * MAX_NAME + 4];
  if (io_take_text(openat(proc, "cgroup", O_RDONLY | O_CLOEXEC), text, sizeof text) <= 0) return false;
  int length = snprintf(path, sizeof path, ":/%s/%s", warden.cgroup, name);
  for (const char *at = strstr(text, path); at != NULL; at = strstr(at + 1, path)) {
    if (at[length] == '\n' || at[length] == '/') return true;
  }
  return false;
}

static void kill_member(pid_t pid, const char *name) {
  char path[32];
  AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  snprintf(path, sizeof path, "/proc/%d", pid);
  AUTO_CLOSE int proc = pidfd < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0 || !cgroup_has(proc, name)) return;
  release_later(proc);
  syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* Kills every process in dir and the groups below it; returns the number of processes seen. */
static unsigned kill_in(int dir, const char *name, int depth) {
  unsigned seen = 0;
  AUTO_CLOSE_FILE FILE *file = io_take_file(path_open(dir, "cgroup.procs", O_RDONLY));
  int pid;
  while (file != NULL && fscanf(file, "%d", &pid) == 1) {
    seen++;
    if (pid > 1) kill_member(pid, name);
  }
  close_file(&file);
  if (depth >= MAX_DEPTH) return seen;
  AUTO_CLOSE_DIR DIR *groups = cgroup_open_groups(dir);
  struct dirent *entry;
  while ((entry = cgroup_next_group(groups)) != NULL) {
    AUTO_CLOSE int below = path_open_dir(dir, entry->d_name);
    if (below >= 0) seen += kill_in(below, name, depth + 1);
  }
  return seen;
}

static unsigned kill_everywhere(const char *name, bool *exists) {
  unsigned seen = 0;
  for (unsigned i = 0; i < cgroup_hierarchy_count; i++) {
    AUTO_CLOSE int dir = cgroup_dir_in(&cgroup_hierarchies[i], name);
    if (dir < 0) continue;
    *exists = true;
    /* One by one before cgroup.kill: release_later needs the processes alive. */
    seen += kill_in(dir, name, 0);
    if (cgroup_hierarchies[i].v2) cgroup_write(dir, "cgroup.kill", "1"); /* since 5.14; on older kernels kill_in is enough */
  }
  return seen;
}

/* On v1 a killed task that is frozen dies only when it is thawed. */
static void thaw(const char *name) {
  struct fail ignored;
  bool v2;
  AUTO_CLOSE int dir = cgroup_dir(name, CGROUP_FREEZER, &v2, &ignored);
  if (dir >= 0) write_frozen(dir, v2, false);
}

int cgroup_kill(const char *name, struct fail *fail) {
  uint64_t deadline = now_us() + KILL_US;
  unsigned round = 0;
  bool exists = false;
  do {
    if (kill_everywhere(name, &exists) == 0) {
      if (!exists) return errno = ENOENT, fail_errno(fail, "kill", "group %s", name);
      return 0;
    }
    thaw(name);
  } while (cgroup_wait(deadline, &round));
  return fail_kind(fail, KIND_BUSY, "kill", "group %s still has processes", name);
}

/* Removes the group parent/name and the groups below it; -1 with errno. */
static int remove_group(int parent, const char *name, int depth) {
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  if (depth >= MAX_DEPTH) return -1;
  AUTO_CLOSE_DIR DIR *groups = io_take_dir(path_open_dir(parent, name));
  if (groups == NULL) return -1;
  struct dirent *entry;
  while ((entry = cgroup_next_group(groups)) != NULL) remove_group(dirfd(groups), entry->d_name, depth + 1);
  return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1;
}

int cgroup_delete(const char *name, struct fail *fail) {
  uint64_t deadline = now_us() + DELETE_US;
  unsigned round = 0;
  bool left;
  do {
    left = false;
    for (unsigned i = 0; i < cgroup_hierarchy_count; i++) {
      AUTO_CLOSE int parent = path_open_dir(cgroup_hierarchies[i].fd, warden.cgroup);
      if (parent < 0) continue;
      if (remove_group(parent, name, 0) < 0) {
        if (errno != EBUSY) return fail_errno(fail, "delete", "group %s", name);
        left = true;
      }
    }
  } while (left && cgroup_wait(deadline, &round));
  return left ? fail_kind(fail, KIND_BUSY, "delete", "group %s is in use", name) : 0;
}

/* Whether an earlier hierarchy has the group, too: then it is in the list already. */
static bool seen_before(unsigned hierarchy, const char *name) {
  for (unsigned i = 0; i < hierarchy; i++) {
    AUTO_CLOSE int dir = cgroup_dir_in(&cgroup_hierarchies[i], name);
    if (dir >= 0) return true;
  }
  return false;
}

int cgroup_list(struct wire_out *ok, struct fail *fail) {
  for (unsigned i = 0; i < cgroup_hierarchy_count; i++) {
    AUTO_CLOSE_DIR DIR *groups = io_take_dir(path_open_dir(cgroup_hierarchies[i].fd, warden.cgroup));
    struct dirent *entry;
    while ((entry = cgroup_next_group(groups)) != NULL) {
      if (strlen(entry->d_name) > MAX_NAME) continue;
      if (!seen_before(i, entry->d_name)) wire_put_str(ok, TAG_OK_name, entry->d_name);
    }
  }
  return ok->full ? fail_kind(fail, KIND_SYSTEM, "list", "too many groups") : 0;
}

int cgroup_reclaim(const char *name, struct fail *fail) {
  bool v2;
  AUTO_CLOSE int dir = cgroup_dir(name, CGROUP_MEMORY, &v2, fail);
  if (dir < 0) return -1;
  char bytes[32];
  snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)cgroup_number(dir, "memory.current"));
  int result = v2 ? cgroup_write(dir, "memory.reclaim", bytes) : cgroup_write(dir, "memory.force_empty", "0");
  /* EAGAIN, EBUSY: not everything was reclaimed. ENOENT: v2 of a kernel before 5.19. */
  if (result == 0 || errno == EAGAIN || errno == EBUSY || errno == EINTR || errno == ENOENT) return 0;
  return fail_errno(fail, "reclaim", "group %s", name);
}

/* The working set: charged memory minus inactive file pages. */
static int stat_memory(const char *name, struct wire_out *ok, struct fail *fail) {
  bool v2;
  char text[8192];
  AUTO_CLOSE int dir = cgroup_dir(name, CGROUP_MEMORY, &v2, fail);
  if (dir < 0) return -1;
  uint64_t used = cgroup_number(dir, v2 ? "memory.current" : "memory.usage_in_bytes");
  uint64_t cold = cgroup_read(dir, "memory.stat", text, sizeof text) < 0 ? 0
                  : cgroup_keyed(text, v2 ? "inactive_file" : "total_inactive_file");
  wire_put_u64(ok, REC_CGROUP_STAT_memory_bytes, used > cold ? used - cold : 0);
  wire_put_u64(ok, REC_CGROUP_STAT_memory_peak_bytes, cgroup_number(dir, v2 ? "memory.peak" : "memory.max_usage_in_bytes"));
  bool counted = cgroup_read(dir, v2 ? "memory.events" : "memory.oom_control", text, sizeof text) == 0;
  wire_put_u64(ok, REC_CGROUP_STAT_oom_kills, counted ? cgroup_keyed(text, "oom_kill") : 0);
  return 0;
}

static int stat_rest(const char *name, struct wire_out *ok, struct fail *fail) {
  bool v2;
  char text[4096];
  AUTO_CLOSE int cpu = cgroup_dir(name, CGROUP_CPUACCT, &v2, fail);
  if (cpu < 0) return -1;
  uint64_t usec = !v2 ? cgroup_number(cpu, "cpuacct.usage") / 1000
                  : cgroup_read(cpu, "cpu.stat", text, sizeof text) == 0 ? cgroup_keyed(text, "usage_usec") : 0;
  wire_put_u64(ok, REC_CGROUP_STAT_cpu_usec, usec);
  AUTO_CLOSE int pids = cgroup_dir(name, CGROUP_PIDS, &v2, fail);
  if (pids < 0) return -1;
  wire_put_u32(ok, REC_CGROUP_STAT_pids, (uint32_t)cgroup_number(pids, "pids.current"));
  AUTO_CLOSE int freezer = cgroup_dir(name, CGROUP_FREEZER, &v2, fail);
  if (freezer < 0) return -1;
  wire_put_u32(ok, REC_CGROUP_STAT_frozen, is_state(freezer, v2, true));
  return 0;
}

int cgroup_stat(const char *name, struct wire_out *ok, struct fail *fail) {
  size_t mark = wire_begin(ok, TAG_OK_stat);
  if (stat_memory(name, ok, fail) < 0 || stat_rest(name, ok, fail) < 0) return -1;
  wire_end(ok, mark);
  return 0;
}
