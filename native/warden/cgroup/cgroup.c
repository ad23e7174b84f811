#include "cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "paths.h"

enum { CPU_PERIOD_US = 100000, CPU_QUOTA_MIN_US = 1000, SOCKETS_BYTES = 64 << 20 };

struct hierarchy cgroup_hierarchies[MAX_HIERARCHIES];
unsigned cgroup_hierarchy_count;

static unsigned controllers_in(const char *list) {
  static const struct {
    const char *name;
    unsigned bit;
  } known[] = {{"memory", CGROUP_MEMORY}, {"cpu", CGROUP_CPU}, {"cpuacct", CGROUP_CPUACCT},
               {"pids", CGROUP_PIDS}, {"freezer", CGROUP_FREEZER}};
  char copy[512], *save = NULL;
  unsigned bits = 0;
  snprintf(copy, sizeof copy, "%s", list);
  for (char *word = strtok_r(copy, ", \n", &save); word != NULL; word = strtok_r(NULL, ", \n", &save)) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
      if (strcmp(word, known[i].name) == 0) bits |= known[i].bit;
    }
  }
  return bits;
}

static void add_hierarchy(const char *at, bool v2, const char *options) {
  int fd = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  struct hierarchy found = {.fd = fd, .v2 = v2, .controllers = v2 ? 0 : controllers_in(options)};
  char text[512];
  if (v2 && cgroup_read(fd, "cgroup.controllers", text, sizeof text) == 0) {
    /* v2 always has CPU accounting and the freezer. On a hybrid machine the controllers of v1 come first. */
    found.controllers = controllers_in(text) | CGROUP_FREEZER | CGROUP_CPUACCT;
  }
  cgroup_hierarchies[cgroup_hierarchy_count++] = found;
}

int cgroup_open(struct fail *fail) {
  AUTO_CLOSE_FILE FILE *file = fopen("/proc/self/mountinfo", "re");
  if (file == NULL) return fail_errno(fail, "cgroup", "mountinfo");
  char line[4096];
  while (fgets(line, sizeof line, file) != NULL && cgroup_hierarchy_count < MAX_HIERARCHIES) {
    char at[1024], type[32], options[512];
    const char *dash = strstr(line, " - ");
    if (dash == NULL || sscanf(line, "%*d %*d %*s %*s %1023s ", at) != 1) continue;
    if (sscanf(dash, " - %31s %*s %511s", type, options) != 2) continue;
    if (strcmp(type, "cgroup") == 0) add_hierarchy(at, false, options);
    if (strcmp(type, "cgroup2") == 0) add_hierarchy(at, true, options);
  }
  return 0;
}

int cgroup_dir_in(const struct hierarchy *hierarchy, const char *name) {
  char path[2 * MAX_NAME + 2];
  snprintf(path, sizeof path, "%s%s%s", warden.cgroup, name[0] ? "/" : "", name);
  return path_open_dir(hierarchy->fd, path);
}

int cgroup_dir(const char *name, enum controller controller, bool *v2, struct fail *fail) {
  for (int pass = 0; pass < 2; pass++) { /* v1 first: it has the controllers of a hybrid machine */
    for (unsigned i = 0; i < cgroup_hierarchy_count; i++) {
      const struct hierarchy *hierarchy = &cgroup_hierarchies[i];
      if (hierarchy->v2 != (pass == 1) || !(hierarchy->controllers & controller)) continue;
      int fd = cgroup_dir_in(hierarchy, name);
      if (fd < 0) return fail_errno(fail, "cgroup", "group %s", name);
      *v2 = hierarchy->v2;
      return fd;
    }
  }
  return fail_kind(fail, KIND_UNSUPPORTED, "cgroup", "this machine has no hierarchy with controller %d", controller);
}

int cgroup_open_members(void) {
  for (unsigned i = 0; i < cgroup_hierarchy_count; i++) {
    if (cgroup_hierarchies[i].v2 || !(cgroup_hierarchies[i].controllers & CGROUP_PIDS)) continue;
    AUTO_CLOSE int dir = path_open_dir(cgroup_hierarchies[i].fd, warden.cgroup);
    return dir < 0 ? -1 : path_open(dir, "cgroup.procs", O_WRONLY);
  }
  return -1;
}

int cgroup_write(int dir, const char *file, const char *text) {
  AUTO_CLOSE int fd = path_open(dir, file, O_WRONLY);
  if (fd < 0) return -1;
  return write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

int cgroup_read(int dir, const char *file, char *text, size_t size) {
  return io_take_text(path_open(dir, file, O_RDONLY), text, size) < 0 ? -1 : 0;
}

uint64_t cgroup_number(int dir, const char *file) {
  char text[64];
  return cgroup_read(dir, file, text, sizeof text) == 0 ? strtoull(text, NULL, 10) : 0;
}

DIR *cgroup_open_groups(int dir) {
  return io_take_dir(path_open_dir(dir, "."));
}

struct dirent *cgroup_next_group(DIR *groups) {
  struct dirent *entry;
  while ((entry = io_next_entry(groups)) != NULL && (entry->d_type != DT_DIR || entry->d_name[0] == '.')) continue;
  return entry;
}

uint64_t cgroup_keyed(const char *text, const char *key) {
  size_t length = strlen(key);
  for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, key, length) == 0 && line[length] == ' ') return strtoull(line + length, NULL, 10);
  }
  return 0;
}

bool cgroup_wait(uint64_t deadline_us, unsigned *round) {
  if (now_us() > deadline_us) return false;
  unsigned us = 100u << (*round < 7 ? *round : 7);
  (*round)++;
  usleep(us);
  return true;
}

static int limit_memory(int dir, bool v2, uint64_t bytes, struct fail *fail) {
  char text[32];
  if (bytes) snprintf(text, sizeof text, "%" PRIu64, bytes);
  else snprintf(text, sizeof text, "%s", v2 ? "max" : "-1");
  if (v2) {
    /* No swap for a limited group: it would bypass the limit. Kernels without swap accounting lack the file. */
    if (cgroup_write(dir, "memory.swap.max", bytes ? "0" : "max") < 0 && errno != ENOENT) {
      return fail_errno(fail, "limit", "memory.swap.max");
    }
    return cgroup_write(dir, "memory.max", text) < 0 ? fail_errno(fail, "limit", "memory.max") : 0;
  }
  /* v1 requires limit <= memsw at all times: if one order of writing is refused, the other one works. */
  bool first = cgroup_write(dir, "memory.limit_in_bytes", text) == 0;
  int memsw = cgroup_write(dir, "memory.memsw.limit_in_bytes", text);
  if (memsw < 0 && errno != ENOENT && errno != EOPNOTSUPP) return fail_errno(fail, "limit", "memory.memsw.limit_in_bytes");
  if (!first && cgroup_write(dir, "memory.limit_in_bytes", text) < 0) return fail_errno(fail, "limit", "memory.limit_in_bytes");
  return 0;
}

int cgroup_limit_tcp(int dir, uint64_t bytes, struct fail *fail) {
  char text[32];
  snprintf(text, sizeof text, "%" PRIu64, bytes);
  if (cgroup_write(dir, "memory.kmem.tcp.limit_in_bytes", text) == 0 || errno == ENOENT) return 0;
  return fail_errno(fail, "limit", "memory.kmem.tcp.limit_in_bytes");
}

/* v1 counts socket memory separately: it gets a quarter of the memory limit, at most SOCKETS_BYTES. v2 counts it as memory. */
static int limit_sockets(const char *name, uint64_t memory_bytes, struct fail *fail) {
  bool v2;
  uint64_t bytes = memory_bytes == 0 || memory_bytes / 4 > SOCKETS_BYTES ? SOCKETS_BYTES : memory_bytes / 4;
  AUTO_CLOSE int dir = cgroup_dir(name, CGROUP_MEMORY, &v2, fail);
  if (dir < 0) return -1;
  return v2 ? 0 : cgroup_limit_tcp(dir, bytes, fail);
}

static int limit_cpu(int dir, bool v2, uint32_t millis, struct fail *fail) {
  char text[48];
  uint64_t quota = (uint64_t)millis * CPU_PERIOD_US / 1000;
  if (quota < CPU_QUOTA_MIN_US) quota = CPU_QUOTA_MIN_US;
  if (v2) {
    if (millis) snprintf(text, sizeof text, "%" PRIu64 " %d", quota, CPU_PERIOD_US);
    else snprintf(text, sizeof text, "max %d", CPU_PERIOD_US);
    return cgroup_write(dir, "cpu.max", text) < 0 ? fail_errno(fail, "limit", "cpu.max") : 0;
  }
  snprintf(text, sizeof text, "%d", CPU_PERIOD_US);
  if (cgroup_write(dir, "cpu.cfs_period_us", text) < 0) return fail_errno(fail, "limit", "cpu.cfs_period_us");
  if (millis) snprintf(text, sizeof text, "%" PRIu64, quota);
  else snprintf(text, sizeof text, "-1");
  return cgroup_write(dir, "cpu.cfs_quota_us", text) < 0 ? fail_errno(fail, "limit", "cpu.cfs_quota_us") : 0;
}

int cgroup_limit(const char *name, const struct limits *limits, struct fail *fail) {
  if (limits->has_memory && limit_sockets(name, limits->memory_bytes, fail) < 0) return -1;
  return cgroup_limit_group(name, limits, fail);
}

int cgroup_limit_group(const char *name, const struct limits *limits, struct fail *fail) {
  bool v2;
  if (limits->has_memory) {
    AUTO_CLOSE int dir = cgroup_dir(name, CGROUP_MEMORY, &v2, fail);
    if (dir < 0 || limit_memory(dir, v2, limits->memory_bytes, fail) < 0) return -1;
  }
  if (limits->has_cpu) {
    AUTO_CLOSE int dir = cgroup_dir(name, CGROUP_CPU, &v2, fail);
    if (dir < 0 || limit_cpu(dir, v2, limits->cpu_millis, fail) < 0) return -1;
  }
  if (limits->has_pids) {
    AUTO_CLOSE int dir = cgroup_dir(name, CGROUP_PIDS, &v2, fail);
    char text[16];
    if (dir < 0) return -1;
    if (limits->pids) snprintf(text, sizeof text, "%u", limits->pids);
    else snprintf(text, sizeof text, "max");
    if (cgroup_write(dir, "pids.max", text) < 0) return fail_errno(fail, "limit", "pids.max");
  }
  return 0;
}
