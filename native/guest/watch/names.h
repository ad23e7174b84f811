/*
 * watch_names: the names in one watched directory, so that a rename over one of them can be told from a new one.
 *
 * A name is kept as a hash of 4 bytes. Two names with one hash, 1 in 4 billion for each, are taken for the same.
 */
#ifndef ISLET_WATCH_NAMES_H
#define ISLET_WATCH_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct watch_names {
  uint32_t *slots; /* 0: free; a name is in the first free slot from its own on */
  uint32_t count, capacity;
};

bool watch_names_has(const struct watch_names *names, const char *name);
/* Adds a name that is not there. False: no memory. */
bool watch_names_add(struct watch_names *names, const char *name);
/* False: it was not there. */
bool watch_names_remove(struct watch_names *names, const char *name);
void watch_names_free(struct watch_names *names);

#endif
