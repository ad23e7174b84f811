/*
 * Makes sandboxes that burn CPU time yield. The kernel shares time evenly, but a thread that wakes up still waits for the slice of
 * the running thread. A sandbox that wakes a thousand times for one command (gVisor's kernel and its programs wake each other)
 * would wait for seconds. A group with cpu.idle runs only when no other group wants to, and is interrupted at once.
 *
 * On a machine without free CPU time, the groups that use at least the average yield, as long as together they use more than
 * the groups that yield already. The others then get CPU time at once; the yielding groups share the rest.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup/cgroup.h"
#include "paths.h"

enum {
  MAX_GROUPS = 4096, /* a power of two, above the sandboxes of a slot */
  ROUND_MIN_US = 50 * 1000,
  /* Idle CPU time of all cores: up to FREE_PERCENT groups yield; above QUIET_PERCENT groups are not even measured. */
  FREE_PERCENT = 10,
  QUIET_PERCENT = 75,
  /* CPU time of a group, of one core. */
  RUNS_PERCENT = 1,
  BURNS_PERCENT = 5, /* a yielding group that uses less is resting or was kept from running: it stops yielding */
};

struct group {
  ino_t inode; /* 0: a free slot of the table */
  uint64_t usec, used; /* CPU time in total, and since the last round */
  bool idle;
};

/* The groups of this round and of the last one. */
static struct group tables[2][MAX_GROUPS];
static struct group *before = tables[0], *now = tables[1];
static uint64_t round_us, idle_us;
static bool any_idle;

/* The groups that ran in this round: [0] normal ones, [1] yielding ones. */
static struct {
  uint64_t usec, count;
} running[2];

/* The slot of a group, or a free one; NULL if the table is full. */
static struct group *place(struct group *table, ino_t inode) {
  for (unsigned i = 0; i < MAX_GROUPS; i++) {
    struct group *group = &table[(inode + i) % MAX_GROUPS];
    if (group->inode == inode || group->inode == 0) return group;
  }
  return NULL;
}

/* The idle share of all cores' time since the last round; the second number of /proc/uptime is the idle time. */
static uint64_t idle_percent(uint64_t elapsed_us) {
  double idle = 0;
  AUTO_CLOSE_FILE FILE *file = fopen("/proc/uptime", "re");
  if (file == NULL) return 0;
  if (fscanf(file, "%*f %lf", &idle) != 1) idle = 0;
  uint64_t last = idle_us;
  idle_us = (uint64_t)(idle * 1e6);
  return (idle_us - last) * 100 / (elapsed_us * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
}

static bool used_usec(const char *name, uint64_t *usec) {
  struct fail ignored;
  char text[1024];
  bool v2;
  AUTO_CLOSE int dir = cgroup_dir(name, CGROUP_CPUACCT, &v2, &ignored);
  if (dir < 0 || cgroup_read(dir, v2 ? "cpu.stat" : "cpuacct.usage", text, sizeof text) < 0) return false;
  *usec = v2 ? cgroup_keyed(text, "usage_usec") : strtoull(text, NULL, 10) / 1000;
  return true;
}

static void measure(int parent, const char *name, ino_t inode, uint64_t elapsed_us) {
  char text[8] = "";
  struct group *group = place(now, inode);
  const struct group *old = place(before, inode);
  if (group == NULL || !used_usec(name, &group->usec)) return;
  group->inode = inode;
  if (old != NULL && old->inode != 0) {
    group->idle = old->idle;
    group->used = group->usec - old->usec;
  } else {
    AUTO_CLOSE int dir = path_open_dir(parent, name);
    group->idle = dir >= 0 && cgroup_read(dir, "cpu.idle", text, sizeof text) == 0 && text[0] == '1';
  }
  if (group->used * 100 < elapsed_us * RUNS_PERCENT) return;
  running[group->idle].usec += group->used;
  running[group->idle].count++;
}

static bool burns(const struct group *group, uint64_t elapsed_us) {
  if (group->used * 100 < elapsed_us * BURNS_PERCENT) return false;
  if (group->idle) return 2 * group->used * running[1].count >= running[1].usec;
  return running[0].usec >= running[1].usec && group->used * running[0].count >= running[0].usec;
}

/* Kernels before 5.15 have no cpu.idle; no group yields there. */
static void judge(int parent, const char *name, ino_t inode, bool free, uint64_t elapsed_us) {
  struct group *group = place(now, inode);
  if (group == NULL || group->inode == 0) return;
  bool idle = !free && burns(group, elapsed_us);
  if (idle != group->idle) {
    AUTO_CLOSE int dir = path_open_dir(parent, name);
    if (dir >= 0 && cgroup_write(dir, "cpu.idle", idle ? "1" : "0") == 0) group->idle = idle;
  }
  any_idle |= group->idle;
}

int cgroup_yield(struct fail *fail) {
  bool v2;
  uint64_t elapsed = now_us() - round_us;
  if (elapsed < ROUND_MIN_US) return 0;
  uint64_t idle = idle_percent(elapsed);
  bool free = idle > FREE_PERCENT;
  round_us += elapsed;
  memset(now, 0, sizeof tables[0]);
  memset(running, 0, sizeof running);
  if (idle <= QUIET_PERCENT || any_idle) {
    AUTO_CLOSE int parent = cgroup_dir("", CGROUP_CPU, &v2, fail);
    if (parent < 0) return -1;
    AUTO_CLOSE_DIR DIR *groups = cgroup_open_groups(parent);
    if (groups == NULL) return fail_errno(fail, "yield", "list");
    any_idle = false;
    for (int pass = 0; pass < 2; pass++) {
      struct dirent *entry;
      for (rewinddir(groups); (entry = cgroup_next_group(groups)) != NULL;) {
        if (pass == 0) measure(parent, entry->d_name, entry->d_ino, elapsed);
        else judge(parent, entry->d_name, entry->d_ino, free, elapsed);
      }
    }
  }
  struct group *swap = before;
  before = now;
  now = swap;
  return 0;
}
