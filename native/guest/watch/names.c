#include "watch/names.h"

#include <stddef.h>
#include <stdlib.h>

#include "link/hash.h"

enum { WATCH_NAMES_FIRST = 8 };

static uint32_t hash_name(const char *name) {
  uint32_t hash = hash_text(name);
  return hash == 0 ? 1 : hash;
}

/* The slot of the hash, or the free slot for it. */
static uint32_t slot_of(const struct watch_names *names, uint32_t hash) {
  uint32_t at = hash & (names->capacity - 1);
  while (names->slots[at] != 0 && names->slots[at] != hash) at = (at + 1) & (names->capacity - 1);
  return at;
}

bool watch_names_has(const struct watch_names *names, const char *name) {
  return names->capacity > 0 && names->slots[slot_of(names, hash_name(name))] != 0;
}

static bool grow(struct watch_names *names) {
  struct watch_names larger = {.count = names->count};
  larger.capacity = names->capacity == 0 ? WATCH_NAMES_FIRST : names->capacity * 2;
  larger.slots = calloc(larger.capacity, sizeof *larger.slots);
  if (larger.slots == NULL) return false;
  for (uint32_t i = 0; i < names->capacity; i++) {
    if (names->slots[i] != 0) larger.slots[slot_of(&larger, names->slots[i])] = names->slots[i];
  }
  free(names->slots);
  *names = larger;
  return true;
}

bool watch_names_add(struct watch_names *names, const char *name) {
  /* A quarter stays free, because a search ends at a free slot. */
  if ((names->count + 1) * 4 > names->capacity * 3 && !grow(names)) return false;
  uint32_t hash = hash_name(name);
  names->slots[slot_of(names, hash)] = hash;
  names->count++;
  return true;
}

bool watch_names_remove(struct watch_names *names, const char *name) {
  if (!watch_names_has(names, name)) return false;
  uint32_t mask = names->capacity - 1, hole = slot_of(names, hash_name(name));
  /* Later entries move into the hole, unless that would be before their own slot. */
  for (uint32_t at = (hole + 1) & mask; names->slots[at] != 0; at = (at + 1) & mask) {
    uint32_t own = names->slots[at] & mask;
    if (((at - own) & mask) < ((at - hole) & mask)) continue;
    names->slots[hole] = names->slots[at];
    hole = at;
  }
  names->slots[hole] = 0;
  names->count--;
  return true;
}

void watch_names_free(struct watch_names *names) {
  free(names->slots);
  *names = (struct watch_names){0};
}
