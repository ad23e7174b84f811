/* machine: the end of everything that runs. */
#ifndef ISLET_MACHINE_H
#define ISLET_MACHINE_H

/* The guest was told to end (never as PID 1): ends all its descendants, then itself. */
void machine_end(void) __attribute__((noreturn));

#endif
