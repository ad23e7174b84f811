/* userns: makes the user namespace of a cell, before the runtime makes the others. */
#pragma once

#include <sys/types.h>

#include "warden.h"

/*
 * The kernel charges per-user resources (inotify instances and watches, for example) to the user who made the namespace. If that
 * were root, all sandboxes would share one count, and one sandbox could use it up. So the maker is the sandbox's own first
 * uid, and each sandbox has its own count.
 */
struct userns {
  pid_t holder; /* a process in the namespace, which is /proc/<holder>/ns/user while it lives */
};

/* Maps ids 0 to 65535 inside to uid_base and up. `moves`: a runtime is about to move a process between cgroups. */
int userns_make(uint32_t uid_base, bool moves, struct userns *userns, struct fail *fail);
/* Kills the holder. The namespace stays if another process has joined it. */
void userns_leave(const struct userns *userns);
