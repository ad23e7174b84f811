/*
 * release: takes apart what dead cells had mounted, later and together.
 *
 * With its last mount an overlay syncs the whole filesystem below it: what every sandbox has written, to the disk. That would be the
 * last thing each cell does before it is dead, and would be charged to its memory cgroup, which could not go then. So whoever
 * kills a cell hands its mount namespace to a process of ours that keeps many for a moment and lets go of them in one go: the
 * first of them syncs, the others find nothing left to do.
 */
#ifndef ISLET_WARDEN_RELEASE_H
#define ISLET_WARDEN_RELEASE_H

#include "warden.h"

/* Boot: starts the process. Without it everything works, slower. */
void release_open(void);
/* The mount namespace of the process whose directory in /proc this is goes later; when that cannot be, with the process. */
void release_later(int proc_fd);
/* What is kept goes now, before a layer that was mounted already is mounted again. Waits for it, with a bound. */
void release_now(void);
/* Waits until all is released. */
void release_close(void);

#endif
