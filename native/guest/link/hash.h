/* hash: FNV-1a of a string, for the guest's hash tables. */
#pragma once

#include <stdint.h>

static inline uint32_t hash_text(const char *text) {
  uint32_t hash = 2166136261u;
  for (const char *c = text; *c != 0; c++) hash = (hash ^ (uint8_t)*c) * 16777619u;
  return hash;
}
