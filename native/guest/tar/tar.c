#include "tar/tar.h"

#include <stddef.h>

unsigned tar_checksum(const struct tar_header *header) {
  const unsigned char *bytes = (const unsigned char *)header;
  unsigned sum = 0;
  size_t from = offsetof(struct tar_header, checksum), to = from + sizeof header->checksum;
  for (size_t i = 0; i < sizeof *header; i++) sum += i >= from && i < to ? ' ' : bytes[i];
  return sum;
}

bool tar_number(const char *field, unsigned size, uint64_t *out) {
  const unsigned char *bytes = (const unsigned char *)field;
  uint64_t value = 0;
  unsigned i = 0;
  if (bytes[0] == 0x80) { /* binary, not negative */
    for (i = 1; i < size; i++) {
      if (value > UINT64_MAX >> 8) return false;
      value = value << 8 | bytes[i];
    }
    *out = value;
    return true;
  }
  while (i < size && bytes[i] == ' ') i++;
  for (; i < size && bytes[i] >= '0' && bytes[i] <= '7'; i++) value = value << 3 | (uint64_t)(bytes[i] - '0');
  if (i < size && bytes[i] != 0 && bytes[i] != ' ') return false;
  *out = value;
  return true;
}
