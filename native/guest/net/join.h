/*
 * join: two connected sockets, bytes passed both ways.
 *
 * Each direction holds at most JOIN_BUFFER bytes; a side that does not read stops the other. The end of one side is
 * passed on as a half-close. Both are closed when both have ended, or a moment after one was closed altogether: what the
 * other still says by then is discarded, so that it gets to read the last words.
 */
#ifndef ISLET_JOIN_H
#define ISLET_JOIN_H

#include <stdbool.h>

enum { JOIN_BUFFER = 64 * 1024 };

/* Takes both fds, which must be non-blocking; false: no memory, and both are closed. `over` is called at the end. */
bool join_start(int one, int other, void (*over)(void));

#endif
