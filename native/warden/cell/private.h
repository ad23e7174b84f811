/* private: the warden's own mount namespace. */
#ifndef ISLET_WARDEN_PRIVATE_H
#define ISLET_WARDEN_PRIVATE_H

/*
 * Leaves the host's mount namespace for a copy of it that holds no more than we need: mounts made here are seen by
 * nobody else, and a filesystem that the host unmounts later is not kept busy by a copy of its mount. `keep` are
 * absolute paths without symlinks, ended by NULL; whatever they lie on and whatever lies below them stays.
 * 0, or -1 with errno.
 */
int private_enter(const char *const keep[]);

#endif
