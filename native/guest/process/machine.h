/* machine: kills everything that runs. */
#ifndef ISLET_MACHINE_H
#define ISLET_MACHINE_H

/* SIGTERM to a guest that is not PID 1: kills all its descendants, then exits. */
void machine_end(void) __attribute__((noreturn));

#endif
