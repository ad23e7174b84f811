/* overlay: one tree's overlay mount, seen through the sandbox's own uid range. */
#ifndef ISLET_WARDEN_OVERLAY_H
#define ISLET_WARDEN_OVERLAY_H

#include "request.h"

/*
 * A detached mount: overlay(lowers, upper = <layer>/<tree>), every part of it a clone whose ids are shifted by
 * user_ns. The caller's fsuid must be the range's first id (cred_as), or overlay fails with EOVERFLOW and mounts
 * read-only without a word. The upper and its work directory are made when they are not there. For a process of its
 * own: what it needed on the way is let go when that process ends.
 */
int overlay_mount(const struct tree *tree, const char *layer, int user_ns, struct fail *fail);

/* Boot: on a kernel that cannot build an overlay from detached mounts (before 6.15), sets warden.portable. */
void overlay_probe(void);

/* fsuid and fsgid for the rest of this process, with all its capabilities raised again. */
int cred_as(uint32_t id, struct fail *fail);

#endif
