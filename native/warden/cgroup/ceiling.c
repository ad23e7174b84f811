/* The ceiling for all sandboxes together: the limits of the parent group. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup/cgroup.h"
#include "paths.h"

/* Half of the default weight: the server and the machine come first. */
#define SHARES_V1 "512"
#define WEIGHT_V2 "50"

/* TCP memory is counted machine-wide, in pages. Below the first number of tcp_mem no connection is throttled. */
static uint64_t tcp_bytes(void) {
  unsigned long long pages = 0;
  AUTO_CLOSE_FILE FILE *file = fopen("/proc/sys/net/ipv4/tcp_mem", "re");
  if (file == NULL || fscanf(file, "%llu", &pages) != 1) return 0;
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Makes the parent group before the runtime does, so that its limits exist before the first sandbox. */
static int make_groups(struct fail *fail) {
  for (unsigned i = 0; i < cgroup_hierarchy_count; i++) {
    const struct hierarchy *hierarchy = &cgroup_hierarchies[i];
    if (hierarchy->v2 && (hierarchy->controllers & (CGROUP_MEMORY | CGROUP_CPU | CGROUP_PIDS))) {
      static const char *const each[] = {"+memory", "+cpu", "+pids"};
      /* A missing controller is reported when its limit is written. */
      for (unsigned k = 0; k < sizeof each / sizeof *each; k++) cgroup_write(hierarchy->fd, "cgroup.subtree_control", each[k]);
    }
    if (!(hierarchy->controllers & (CGROUP_MEMORY | CGROUP_CPU | CGROUP_PIDS))) continue;
    if (mkdirat(hierarchy->fd, warden.cgroup, 0755) < 0 && errno != EEXIST) return fail_errno(fail, "ceiling", "mkdir %s", warden.cgroup);
  }
  return 0;
}

static int set_weight(struct fail *fail) {
  bool v2;
  AUTO_CLOSE int dir = cgroup_dir("", CGROUP_CPU, &v2, fail);
  if (dir < 0) return -1;
  if (cgroup_write(dir, v2 ? "cpu.weight" : "cpu.shares", v2 ? WEIGHT_V2 : SHARES_V1) == 0) return 0;
  return fail_errno(fail, "ceiling", "cpu weight");
}

/* Limits TCP memory on v1; v2 counts it as memory. */
static int limit_tcp(struct fail *fail) {
  bool v2;
  uint64_t bytes = tcp_bytes();
  AUTO_CLOSE int dir = cgroup_dir("", CGROUP_MEMORY, &v2, fail);
  if (dir < 0) return -1;
  return v2 || bytes == 0 ? 0 : cgroup_limit_tcp(dir, bytes, fail);
}

/*
 * v1 refuses a CPU ceiling below the quota of a group in it, and an earlier server may have left such groups. Without a quota
 * of its own a group is bound by the ceiling.
 */
static void uncap_groups(void) {
  struct fail ignored;
  bool v2;
  AUTO_CLOSE int dir = cgroup_dir("", CGROUP_CPU, &v2, &ignored);
  AUTO_CLOSE_DIR DIR *groups = dir < 0 || v2 ? NULL : cgroup_open_groups(dir);
  struct dirent *entry;
  while ((entry = cgroup_next_group(groups)) != NULL) {
    AUTO_CLOSE int group = path_open_dir(dir, entry->d_name);
    if (group >= 0) cgroup_write(group, "cpu.cfs_quota_us", "-1");
  }
}

int cgroup_ceiling(const struct limits *limits, struct fail *fail) {
  if (make_groups(fail) < 0 || set_weight(fail) < 0 || limit_tcp(fail) < 0) return -1;
  if (cgroup_limit_group("", limits, fail) == 0) return 0;
  if (fail->err != EINVAL || limits->cpu_millis == 0) return -1;
  uncap_groups();
  return cgroup_limit_group("", limits, fail);
}
