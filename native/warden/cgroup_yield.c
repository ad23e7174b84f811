/*
 * Who burns CPU time gives way. The kernel shares it out evenly, but whoever wakes up still waits for the slice of whoever runs; a
 * sandbox that wakes a thousand times for one command (gVisor's kernel and its programs wake each other) waits for seconds. A group that
 * is idle by name (cpu.idle) runs when nobody else wants to, and is interrupted at once.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "paths.h"

enum {
  MAX_GROUPS = 4096, /* a power of two, above the sandboxes of a slot */
  ROUND_MIN_US = 200 * 1000,
  /* Of one core, in the time since the last round. */
  RUNS_PERCENT = 1,
  RESTS_PERCENT = 5,     /* or was kept from running: then it is its turn */
  MAY_BURN_PERCENT = 10, /* above it: if that is at least the average of several that run */
  BURNS_PERCENT = 50,
};

struct group {
  ino_t inode; /* 0: a free place */
  uint64_t usec;
  bool idle;
};

/* As this round and the one before found them. */
static struct group tables[2][MAX_GROUPS];
static struct group *before = tables[0], *now = tables[1];
static uint64_t round_us;

/* Those that ran, and how long together: of this round, and of the one before, by which this one judges. */
static struct {
  uint64_t usec;
  unsigned count;
} running, ran;

/* The place of a group, or a free one; NULL when all are taken. */
static struct group *place(struct group *table, ino_t inode) {
  for (unsigned i = 0; i < MAX_GROUPS; i++) {
    struct group *group = &table[(inode + i) % MAX_GROUPS];
    if (group->inode == inode || group->inode == 0) return group;
  }
  return NULL;
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

static bool burns(uint64_t used, uint64_t elapsed_us, bool burned) {
  uint64_t percent = used * 100 / elapsed_us;
  if (percent >= RUNS_PERCENT) running.usec += used, running.count++;
  if (percent >= BURNS_PERCENT) return true;
  if (burned) return percent >= RESTS_PERCENT && 2 * used * ran.count >= ran.usec;
  return percent >= MAY_BURN_PERCENT && ran.count > 1 && used * ran.count >= ran.usec;
}

static void judge(int parent, const char *name, uint64_t elapsed_us) {
  struct stat stat;
  char text[8] = "";
  AUTO_CLOSE int dir = path_open_dir(parent, name);
  struct group found = {0};
  if (dir < 0 || fstat(dir, &stat) < 0 || !used_usec(name, &found.usec)) return;
  found.inode = stat.st_ino;
  const struct group *old = place(before, found.inode);
  if (old == NULL || old->inode == 0 || found.usec < old->usec) {
    /* A kernel before 5.15 has no such file; nobody gives way there. */
    found.idle = cgroup_read(dir, "cpu.idle", text, sizeof text) == 0 && text[0] == '1';
  } else {
    found.idle = burns(found.usec - old->usec, elapsed_us, old->idle);
    if (found.idle != old->idle && cgroup_write(dir, "cpu.idle", found.idle ? "1" : "0") < 0) found.idle = old->idle;
  }
  struct group *at = place(now, found.inode);
  if (at != NULL) *at = found;
}

int cgroup_yield(struct fail *fail) {
  bool v2;
  uint64_t elapsed = now_us() - round_us;
  if (elapsed < ROUND_MIN_US) return 0;
  AUTO_CLOSE int parent = cgroup_dir("", CGROUP_CPU, &v2, fail);
  if (parent < 0) return -1;
  int fd = path_open_dir(parent, ".");
  DIR *list = fd < 0 ? NULL : fdopendir(fd);
  struct dirent *entry;
  while (list != NULL && (entry = readdir(list)) != NULL) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') judge(parent, entry->d_name, elapsed);
  }
  if (list != NULL) closedir(list);
  ran.usec = running.usec;
  ran.count = running.count;
  running.usec = running.count = 0;
  struct group *swap = before;
  before = now;
  now = swap;
  memset(now, 0, sizeof tables[0]);
  round_us = now_us();
  return 0;
}
