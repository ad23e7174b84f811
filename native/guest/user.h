/* user: looks users and groups up in the sandbox's own /etc/passwd and /etc/group. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { USER_MAX_GROUPS = 256 };

struct user_ids {
  uid_t uid;
  gid_t gid;
  gid_t groups[USER_MAX_GROUPS]; /* supplementary ones, gid included */
  size_t group_count;
};

/*
 * `spec` is name, uid, name:group or uid:gid. A uid without a row is accepted, with the gid of the same number. An explicit
 * group is the only group. Returns 0, or KIND_NO_USER.
 */
int user_lookup(const char *spec, struct user_ids *ids);

/* A user's row of /etc/passwd; a field is empty if it is missing or too long. */
struct user_profile {
  char name[256];
  char home[1024];
  char shell[256];
};

void user_profile(uid_t uid, struct user_profile *profile);

/* Whether the guest may switch to other users. */
bool user_privileged(void);
