/*
 * settle: sets the name and limits of a gVisor sandbox from inside, because nothing outside can reach its kernel. The engine
 * runs it as a process beside PID 1: setting the name needs CAP_SYS_ADMIN, which PID 1 does not have.
 */
#pragma once

/* At boot of PID 1: applies the limits in ISLET_MEMORY_MAX and ISLET_PIDS_MAX, if they are set. */
void settle_from_environment(void);

/* Applies pairs of --hostname NAME, --memory BYTES, --pids N. Returns an exit code. */
int settle(int count, char **pairs);
