/*
 * join: forwards bytes between two connected sockets, both ways.
 *
 * Each direction buffers at most JOIN_BUFFER bytes; a side that does not read stops the other. The end of one side is passed
 * on as a half-close. Both sockets are closed when both sides have ended, or a moment after one side was closed completely:
 * until then the other side can still read the last bytes, and what it sends is discarded.
 */
#pragma once

#include <stdbool.h>

enum { JOIN_BUFFER = 64 * 1024 };

/* Takes over both non-blocking fds and calls `over` at the end. False: no memory; both fds are closed. */
bool join_start(int one, int other, void (*over)(void));
