/* devices: a /dev for the runtime of one start, whose nodes belong to no other sandbox and not to the machine. */
#ifndef ISLET_WARDEN_DEVICES_H
#define ISLET_WARDEN_DEVICES_H

#include "warden.h"

/*
 * A runtime cannot make device nodes in a user namespace, so it binds those that it finds in /dev. Were they the machine's, all
 * sandboxes would share their inodes: a watch (inotify) sees who opens one, a lock (flock) is held against all. This leaves the
 * calling process in a mount namespace of its own with new nodes there; the sandbox's binds keep them.
 */
int devices_own(struct fail *fail);

#endif
