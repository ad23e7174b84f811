/* devices: device nodes for one sandbox that it shares with no other sandbox and not with the machine. */
#pragma once

#include "warden.h"

/*
 * A runtime cannot make device nodes in a user namespace, so it bind-mounts the ones in /dev. If those were the machine's, all
 * sandboxes would share their inodes: inotify would show who opens them, and a flock would block everybody. This leaves the
 * calling process in its own mount namespace with new nodes in /dev; the sandbox's bind mounts keep them alive.
 */
int devices_own(struct fail *fail);
