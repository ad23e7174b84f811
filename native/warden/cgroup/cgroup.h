/*
 * cgroup: the group <our parent>/<name> in every hierarchy of this machine. On v1 each controller may have a
 * hierarchy of its own, on v2 there is one, a hybrid machine has both; callers need not know.
 */
#ifndef ISLET_WARDEN_CGROUP_H
#define ISLET_WARDEN_CGROUP_H

#include "request.h"

/* Boot: finds the hierarchies. */
int cgroup_open(struct fail *fail);

int cgroup_limit(const char *name, const struct limits *limits, struct fail *fail);
/* The limits of our parent group, which is made if it is missing. */
int cgroup_ceiling(const struct limits *limits, struct fail *fail);
/* Has groups that burn CPU time give way to the others; asked again and again, a fraction of a second apart. */
int cgroup_yield(struct fail *fail);
/* Whom the kernel ends first when memory is short; asked as often. */
void cgroup_choose_victim(void);
int cgroup_stat(const char *name, struct wire_out *ok, struct fail *fail);
/* These wait, with a bound, until it is so. */
int cgroup_freeze(const char *name, bool frozen, struct fail *fail);
int cgroup_kill(const char *name, struct fail *fail);
int cgroup_delete(const char *name, struct fail *fail);
/* What cannot be given back stays: that is no failure. */
int cgroup_reclaim(const char *name, struct fail *fail);
int cgroup_list(struct wire_out *ok, struct fail *fail);

/* cgroup.procs of our parent group, in a hierarchy of v1; -1 when there is none. */
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

/* An empty name is our parent group. */
int cgroup_limit_group(const char *name, const struct limits *limits, struct fail *fail);
/* On v1: what sockets of the group may hold. A kernel without that file has no such limit. */
int cgroup_limit_tcp(int dir, uint64_t bytes, struct fail *fail);
/* The group's directory in the hierarchy that has `controller`, and whether that one is v2; -1 with fail set. */
int cgroup_dir(const char *name, enum controller controller, bool *v2, struct fail *fail);
/* The group's directory in one hierarchy; -1 with errno. */
int cgroup_dir_in(const struct hierarchy *hierarchy, const char *name);
/* Whether a process is in the group or below it; `proc` is its directory, which stays that process. */
bool cgroup_has(int proc, const char *name);
int cgroup_write(int dir, const char *file, const char *text);
/* The file's text with a NUL; -1 with errno. */
int cgroup_read(int dir, const char *file, char *text, size_t size);
/* The number that a file holds; 0 when it cannot be read. */
uint64_t cgroup_number(int dir, const char *file);
/* The groups directly below a group's directory. Both functions accept and return NULL. */
DIR *cgroup_open_groups(int dir);
struct dirent *cgroup_next_group(DIR *groups);
/* The number after `key` in lines of "key number"; 0 when there is none. */
uint64_t cgroup_keyed(const char *text, const char *key);
/* Sleeps a little, longer every time; false once `deadline_us` has passed. */
bool cgroup_wait(uint64_t deadline_us, unsigned *round);

#endif
