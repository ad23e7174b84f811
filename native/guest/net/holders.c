#include "net/holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "link/loop.h"
#include "process/session.h"

enum {
  HOLDERS_SEARCH_US = 20 * 1000,       /* of CPU time, because on a busy machine wall-clock time passes while others run */
  HOLDERS_AGAIN_US = 2 * 1000 * 1000,  /* before a new search for sockets that were not found */
  HOLDERS_MAX_PROCESSES = 16 * 1024,
  HOLDERS_MAX_PARENTS = 256,
};

struct known {
  uint64_t inode;
  pid_t pid; /* 0: not found */
  int fd;
  bool own;
};

/* The result of the last call, sorted by inode. */
static struct known known[HOLDERS_MAX];
static size_t known_count;
static uint64_t again_at_us;
static pid_t searched_downto; /* where the last search ran out of time; 0: it was complete */

static uint64_t own_time_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int holders_by_inode(const void *one, const void *other) {
  const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return a < b ? -1 : a > b;
}

static struct known *known_of(struct known *list, size_t count, uint64_t inode) {
  return bsearch(&inode, list, count, sizeof *list, holders_by_inode);
}

/* The inode of an fd's link "socket:[INODE]"; 0 for anything else. */
static uint64_t socket_of(int dir, const char *name) {
  char target[64];
  ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
  if (n <= 8 || memcmp(target, "socket:[", 8) != 0) return 0;
  target[n] = 0;
  return strtoull(target + 8, NULL, 10);
}

/*
 * Opens /proc/PID/fd. Only the process's own user may read it and the guest has no capability to trace, so it takes that
 * user's fsuid and fsgid until as_guest.
 */
static int open_fds(pid_t pid) {
  char path[32];
  struct stat st;
  snprintf(path, sizeof path, "/proc/%d", (int)pid);
  if (stat(path, &st) < 0) return -1;
  if (st.st_gid != getegid()) setfsgid(st.st_gid);
  if (st.st_uid != geteuid()) setfsuid(st.st_uid);
  snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
  return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void as_guest(void) {
  setfsuid(geteuid());
  setfsgid(getegid());
  /* Changing ids makes the process undumpable, which hides its own /proc from it and is inherited. */
  prctl(PR_SET_DUMPABLE, 1);
}

static bool still_holds(const struct known *one) {
  char name[16];
  AUTO_CLOSE int dir = open_fds(one->pid);
  snprintf(name, sizeof name, "%d", one->fd);
  bool holds = dir >= 0 && socket_of(dir, name) == one->inode;
  as_guest();
  return holds;
}

static bool descends(pid_t pid) {
  if (getpid() == 1) return true;
  struct session_member member;
  for (int i = 0; i < HOLDERS_MAX_PARENTS && pid > 1; i++) {
    if (pid == getpid()) return true;
    if (!session_read(pid, &member)) return false;
    pid = member.parent;
  }
  return false;
}

/* Searches one process; returns the number of sockets found. */
static size_t search_process(pid_t pid, struct known *list, size_t count, uint64_t until_us) {
  size_t found = 0;
  int fd = open_fds(pid);
  AUTO_CLOSE_DIR DIR *dir = io_take_dir(fd);
  struct dirent *entry;
  for (unsigned i = 0; (entry = io_next_entry(dir)) != NULL; i++) {
    if (i % 64 == 63 && own_time_us() > until_us) break;
    uint64_t inode = socket_of(fd, entry->d_name);
    struct known *one = inode == 0 ? NULL : known_of(list, count, inode);
    if (one == NULL || one->pid != 0) continue;
    *one = (struct known){inode, pid, atoi(entry->d_name), false};
    found++;
  }
  as_guest();
  return found;
}

static int newest_first(const void *one, const void *other) {
  return *(const pid_t *)other - *(const pid_t *)one;
}

/* Newest processes first: a new listener most likely belongs to one of them. */
static size_t list_processes(pid_t *pids, size_t max) {
  size_t count = 0;
  AUTO_CLOSE_DIR DIR *proc = opendir("/proc");
  struct dirent *entry;
  while (count < max && (entry = io_next_entry(proc)) != NULL) {
    pid_t pid = atoi(entry->d_name);
    if (pid > 0) pids[count++] = pid;
  }
  qsort(pids, count, sizeof *pids, newest_first);
  return count;
}

static void search(struct known *list, size_t count, size_t missing) {
  static pid_t pids[HOLDERS_MAX_PROCESSES];
  uint64_t until_us = own_time_us() + HOLDERS_SEARCH_US;
  again_at_us = loop_now() + HOLDERS_AGAIN_US;
  size_t processes = list_processes(pids, HOLDERS_MAX_PROCESSES);
  pid_t from = searched_downto;
  searched_downto = 0;
  for (size_t i = 0; i < processes && missing > 0; i++) {
    if (from != 0 && pids[i] >= from) continue;
    missing -= search_process(pids[i], list, count, until_us);
    if (own_time_us() <= until_us) continue;
    searched_downto = pids[i];
    return;
  }
}

void holders_find(struct holder *wanted, size_t count) {
  static struct known now[HOLDERS_MAX];
  size_t missing = 0;
  bool fresh = false;
  for (size_t i = 0; i < count; i++) {
    const struct known *old = known_of(known, known_count, wanted[i].inode);
    bool holds = old != NULL && old->pid != 0 && still_holds(old);
    now[i] = holds ? *old : (struct known){.inode = wanted[i].inode};
    if (holds) continue;
    missing++;
    if (old == NULL || old->pid != 0) fresh = true;
  }
  if (fresh) searched_downto = 0;
  if (missing > 0 && (fresh || loop_now() >= again_at_us)) search(now, count, missing);
  for (size_t i = 0; i < count; i++) {
    const struct known *old = known_of(known, known_count, now[i].inode);
    bool same = old != NULL && old->pid == now[i].pid;
    if (now[i].pid != 0) now[i].own = same ? old->own : descends(now[i].pid);
    struct session_member member;
    bool told = now[i].own && session_read(now[i].pid, &member);
    wanted[i].pid = told ? member.pid : 0;
    wanted[i].session = told ? member.session : 0;
  }
  memcpy(known, now, count * sizeof *now);
  known_count = count;
}
