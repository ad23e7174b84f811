/* pty: pseudo terminals, without the libc functions that need /dev/pts by path. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pty {
  int master; /* non-blocking */
  int slave;
};

/* Opens a pair of this size; `owner` owns the slave. False with errno. */
bool pty_open(struct pty *pty, uint16_t cols, uint16_t rows, uid_t owner);
bool pty_resize(int master, uint16_t cols, uint16_t rows);
