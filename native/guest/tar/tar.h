/*
 * tar: the block format of tar archives (POSIX ustar with pax extensions).
 *
 *     [header 512][content, padded to 512] ... [two blocks of zeros]
 *
 * Values that do not fit a header (long names, large numbers) are in a pax entry of type 'x' before it, as lines
 * "LENGTH KEY=VALUE\n" where LENGTH counts the whole line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TAR_BLOCK = 512 };

struct tar_header {
  char name[100];
  char mode[8], uid[8], gid[8];
  char size[12], mtime[12];
  char checksum[8];
  char type;
  char linkname[100];
  char magic[6], version[2];
  char user[32], group[32];
  char major[8], minor[8];
  char prefix[155];
  char pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is one block");

/* The sum of the block's bytes, with spaces in place of the checksum field. */
unsigned tar_checksum(const struct tar_header *header);
/* Octal, or the binary form of GNU tar. False: not a number. */
bool tar_number(const char *field, unsigned size, uint64_t *out);
