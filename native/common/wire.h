/*
 * wire: the frames and fields that the guest and the warden speak.
 *
 * A frame, all numbers little-endian:
 *
 *     0        4      5         9
 *     +--------+------+---------+----------------
 *     | length | type | stream  | payload ...
 *     +--------+------+---------+----------------
 *       u32      u8     u32       `length` bytes
 *
 * `length` counts the payload only. A payload is either raw bytes (the message
 * table says which) or a run of fields:
 *
 *     0     1        5
 *     +-----+--------+---------------
 *     | tag | length | value ...
 *     +-----+--------+---------------
 *       u8    u32      `length` bytes
 *
 * U32 and U64 values are 4 and 8 bytes; STR is bytes without NUL; BYTES is
 * anything; REC is a run of fields again. A tag that repeats is a list. A
 * reader skips tags it does not know, so messages can grow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  WIRE_HEADER_BYTES = 9,
  WIRE_FIELD_BYTES = 5,
  WIRE_MAX_PAYLOAD = 1024 * 1024, /* fits argv and env of the largest spawn */
};

struct wire_frame {
  uint8_t type;
  uint32_t stream;
  const uint8_t *payload; /* points into the decoded buffer */
  uint32_t length;
};

/* Bytes the first frame of buf takes; 0 when it is not whole yet; -1 when its length is over the maximum. */
long wire_decode(const uint8_t *buf, size_t len, struct wire_frame *frame);

/* Writes a header of WIRE_HEADER_BYTES for a payload of `length` bytes. */
void wire_header(uint8_t *buf, uint8_t type, uint32_t stream, uint32_t length);

struct wire_cursor {
  const uint8_t *at;
  const uint8_t *end;
};

struct wire_field {
  uint8_t tag;
  uint32_t length;
  const uint8_t *value;
};

/* 1: a field was read; 0: no more; -1: the payload is malformed. */
int wire_next(struct wire_cursor *cursor, struct wire_field *field);

/* False when the field's length does not fit the kind. */
bool wire_u32(const struct wire_field *field, uint32_t *out);
bool wire_u64(const struct wire_field *field, uint64_t *out);
/* Copies a STR into out with a NUL; false when it is longer than size - 1 or holds a NUL. */
bool wire_str(const struct wire_field *field, char *out, size_t size);

/* Builds a payload in a buffer of the caller; `full` is set once something did not fit, and stays. */
struct wire_out {
  uint8_t *buf;
  size_t len;
  size_t cap;
  bool full;
};

/* An empty payload of at most `size` bytes, in the block it is written in. */
#define WIRE_OUT(size) {(uint8_t[size]){0}, 0, size, false}

void wire_put_u32(struct wire_out *out, uint8_t tag, uint32_t value);
void wire_put_u64(struct wire_out *out, uint8_t tag, uint64_t value);
void wire_put_str(struct wire_out *out, uint8_t tag, const char *value);
void wire_put_bytes(struct wire_out *out, uint8_t tag, const void *value, size_t length);
/* Fields put between begin and end become one REC; begin returns the mark that end takes. */
size_t wire_begin(struct wire_out *out, uint8_t tag);
void wire_end(struct wire_out *out, size_t mark);
