/*
 * watch_names: the names in one watched directory, to tell a rename over an existing name from a new name.
 *
 * A name is kept as a 4-byte hash. Two names with the same hash (1 in 4 billion for each pair) count as the same name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct watch_names {
  uint32_t *slots; /* open addressing; 0: free */
  uint32_t count, capacity;
};

bool watch_names_has(const struct watch_names *names, const char *name);
/* Adds a name that is not there. False: no memory. */
bool watch_names_add(struct watch_names *names, const char *name);
/* False: it was not there. */
bool watch_names_remove(struct watch_names *names, const char *name);
void watch_names_free(struct watch_names *names);
