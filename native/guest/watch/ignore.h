/*
 * watch_ignore: the names one WATCH does not look at.
 *
 * `*` stands for any run of bytes, `\` takes the next byte as it is. There is no more to it than that, so that a hostile
 * name costs at most its length times the pattern's.
 */
#ifndef ISLET_WATCH_IGNORE_H
#define ISLET_WATCH_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

struct wire_frame;

struct watch_ignore {
  char *patterns; /* one after the other, each with its NUL */
  size_t count;
};

/* Reads the list of a WATCH. False: it is bad, and ERROR has been sent. */
bool watch_ignore_read(struct watch_ignore *ignore, const struct wire_frame *req);
bool watch_ignored(const struct watch_ignore *ignore, const char *name);
void watch_ignore_free(struct watch_ignore *ignore);

#endif
