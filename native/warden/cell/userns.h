/* userns: the user namespace of a cell, made before the runtime makes the rest. */
#ifndef ISLET_WARDEN_USERNS_H
#define ISLET_WARDEN_USERNS_H

#include <sys/types.h>

#include "warden.h"

/*
 * What the kernel counts per user (inotify instances and watches, for one) is charged to whoever made the namespace. If
 * that were root, all sandboxes would share one count, and one of them could use it up. So the maker is the sandbox's own
 * first uid, and each has a count of its own.
 */
struct userns {
  pid_t holder; /* the namespace is /proc/<holder>/ns/user, as long as it lives */
};

/* Makes one whose ids 0 to 65535 are the machine's uid_base on. `moves`: a runtime is about to move a process to a cgroup. */
int userns_make(uint32_t uid_base, bool moves, struct userns *userns, struct fail *fail);
/* Ends the holder: the namespace stays if somebody has joined it. */
void userns_leave(const struct userns *userns);

#endif
