/*
 * release: unmounts the overlays of dead cells later, many at once.
 *
 * When the last mount of an overlay goes, the kernel syncs the whole filesystem below it, with the data of all sandboxes. A dying
 * cell would wait for that, and the memory would be charged to its cgroup, which then could not be removed. So the killer of
 * a cell hands the cell's mount namespace to the keeper, a process of ours that holds many for a moment and closes them
 * together: the first one syncs, the others find nothing left to write.
 */
#pragma once

#include "warden.h"

/* Boot: starts the keeper. Without it everything works, but slower. */
void release_open(void);
/* Hands over the mount namespace of a process, given as its directory in /proc. If that fails, it goes with the process. */
void release_later(int proc_fd);
/* Releases everything now and waits, up to a deadline. Needed before a layer is mounted again. */
void release_now(void);
/* Releases everything, ends the keeper and waits for it. */
void release_close(void);
