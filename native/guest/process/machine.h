/* machine: kills everything that runs. */
#pragma once

/* SIGTERM to a guest that is not PID 1: kills all its descendants, then exits. */
void machine_end(void) __attribute__((noreturn));
