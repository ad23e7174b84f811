/* user: looks users and groups up in the sandbox's own /etc/passwd and /etc/group. */
#ifndef ISLET_USER_H
#define ISLET_USER_H

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
 * spec is name, uid, name:group or uid:gid. A number that is in no file is taken as it is, with a group of the
 * same number. With an explicit group that group is the only one. 0, or a KIND_... of message.def (NO_USER).
 */
int user_lookup(const char *spec, struct user_ids *ids);

/* A user's row of /etc/passwd; empty where there is none or it does not fit. */
struct user_profile {
  char name[256];
  char home[1024];
  char shell[256];
};

void user_profile(uid_t uid, struct user_profile *profile);

/* The guest may become other users. */
bool user_privileged(void);

#endif
