/* private: the warden's own mount namespace. */
#pragma once

/*
 * Enters a copy of the host's mount namespace and drops the mounts that are not needed: mounts made here are invisible to
 * others, and a filesystem that the host unmounts later is not kept busy by our copy. `keep` lists absolute paths without
 * symlinks, ended by NULL; the mounts they are on and the mounts below them stay. 0, or -1 with errno.
 */
int private_enter(const char *const keep[]);
