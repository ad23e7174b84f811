/*
 * watch_ignore: name patterns that a WATCH ignores.
 *
 * `*` matches any run of bytes, `\` quotes the next byte. Nothing else is special, so that matching a hostile name costs
 * at most its length times the pattern's length.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct wire_frame;

struct watch_ignore {
  char *patterns; /* concatenated, each with its NUL */
  size_t count;
};

/* Reads the list of a WATCH. False: the list is bad and ERROR has been sent. */
bool watch_ignore_read(struct watch_ignore *ignore, const struct wire_frame *req);
bool watch_ignored(const struct watch_ignore *ignore, const char *name);
void watch_ignore_free(struct watch_ignore *ignore);
