/* overlay: one tree's overlay mount, seen through the sandbox's own uid range. */
#pragma once

#include <sys/types.h>

#include "request.h"

/*
 * A detached mount: overlay(lowers, upper = <layer>/<tree>). Every part is a clone whose ids are shifted by user_ns. The
 * caller's fsuid must be the first id of the range (cred_as); otherwise overlay hits EOVERFLOW and silently mounts read-only.
 * Makes the upper and its work directory if they are missing. Call it in a process of its own: the parts are released when
 * that process exits.
 */
int overlay_mount(const struct tree *tree, const char *layer, int user_ns, struct fail *fail);

/*
 * For kernels before 6.15: the parts of an overlay must be attached somewhere while it is mounted. The place is a tmpfs in
 * the scratch, and the current directory in between. Leaving it unmounts it lazily with all that is in it, and passes
 * mount_fd on; loop.c unmounts it if this process dies before.
 */
int overlay_enter_place(mode_t mode, struct fail *fail);
int overlay_leave_place(int mount_fd, struct fail *fail);
/* One fsconfig option whose value is an open directory. */
int overlay_set_dir(int fs, const char *key, int dir);

/* Boot: on a kernel that cannot build an overlay from detached mounts (before 6.15), sets warden.portable. */
void overlay_probe(void);
