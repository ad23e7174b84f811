/*
 * settle: name and limits of a sandbox whose kernel is its own (gVisor), from inside, because nobody outside can set them. For
 * a process beside PID 1 that the engine starts; the name needs CAP_SYS_ADMIN, which PID 1 does not have.
 */
#ifndef ISLET_GUEST_SETTLE_H
#define ISLET_GUEST_SETTLE_H

/* What PID 1 does itself at boot: the limits in ISLET_MEMORY_MAX and ISLET_PIDS_MAX, where they are set. */
void settle_from_environment(void);

/* Pairs of --hostname NAME, --memory BYTES, --pids N. An exit code. */
int settle(int count, char **pairs);

#endif
