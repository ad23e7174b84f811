/*
 * cgroup: the group <parent>/<name> of each sandbox, in every hierarchy of this machine. On v1 each controller may have its
 * own hierarchy, v2 has one for all, a hybrid machine has both; callers need not know.
 */
#pragma once

#include "request.h"

/* Boot: finds the mounted hierarchies. */
int cgroup_open(struct fail *fail);

int cgroup_limit(const char *name, const struct limits *limits, struct fail *fail);
/* Sets the limits of the parent group; makes the group if it is missing. */
int cgroup_ceiling(const struct limits *limits, struct fail *fail);
/* Makes groups that burn CPU time yield to the others. The server calls it several times a second. */
int cgroup_yield(struct fail *fail);
/* Chooses the group that the OOM killer ends first. Called as often. */
void cgroup_choose_victim(void);
int cgroup_stat(const char *name, struct wire_out *ok, struct fail *fail);
/* These wait until it has happened, up to a deadline. */
int cgroup_freeze(const char *name, bool frozen, struct fail *fail);
int cgroup_kill(const char *name, struct fail *fail);
int cgroup_delete(const char *name, struct fail *fail);
/* Reclaims as much memory as the kernel can; little or none is not a failure. */
int cgroup_reclaim(const char *name, struct fail *fail);
int cgroup_list(struct wire_out *ok, struct fail *fail);

/* Opens cgroup.procs of the parent group in a v1 hierarchy; -1 if there is none. */
int cgroup_open_members(void);

/* Shared by the cgroup_*.c files. */
enum controller { CGROUP_MEMORY = 1, CGROUP_CPU = 2, CGROUP_CPUACCT = 4, CGROUP_PIDS = 8, CGROUP_FREEZER = 16 };

struct hierarchy {
  int fd; /* the mount */
  bool v2;
  unsigned controllers;
};

extern struct hierarchy cgroup_hierarchies[MAX_HIERARCHIES];
extern unsigned cgroup_hierarchy_count;

/* An empty name is the parent group. */
int cgroup_limit_group(const char *name, const struct limits *limits, struct fail *fail);
/* v1: limits the memory of the group's TCP sockets. Succeeds on a kernel without that limit. */
int cgroup_limit_tcp(int dir, uint64_t bytes, struct fail *fail);
/* Opens the group's directory in the hierarchy of `controller` and tells whether it is v2; -1 with fail set. */
int cgroup_dir(const char *name, enum controller controller, bool *v2, struct fail *fail);
/* The group's directory in one hierarchy; -1 with errno. */
int cgroup_dir_in(const struct hierarchy *hierarchy, const char *name);
/* Whether a process is in the group or below it. `proc` is its open directory in /proc, which a reused pid cannot take over. */
bool cgroup_has(int proc, const char *name);
int cgroup_write(int dir, const char *file, const char *text);
/* The file's text with a NUL; -1 with errno. */
int cgroup_read(int dir, const char *file, char *text, size_t size);
/* The number that a file holds; 0 when it cannot be read. */
uint64_t cgroup_number(int dir, const char *file);
/* The groups directly below a group's directory. Both functions accept and return NULL. */
DIR *cgroup_open_groups(int dir);
struct dirent *cgroup_next_group(DIR *groups);
/* The number in the line "key number"; 0 if there is none. */
uint64_t cgroup_keyed(const char *text, const char *key);
/* Sleeps a little, longer each round; false after `deadline_us`. */
bool cgroup_wait(uint64_t deadline_us, unsigned *round);
