#include "wire.h"

#include <string.h>

static uint32_t load32(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void store32(uint8_t *p, uint32_t v) {
  p[0] = (uint8_t)v;
  p[1] = (uint8_t)(v >> 8);
  p[2] = (uint8_t)(v >> 16);
  p[3] = (uint8_t)(v >> 24);
}

long wire_decode(const uint8_t *buf, size_t len, struct wire_frame *frame) {
  if (len < WIRE_HEADER_BYTES) return 0;
  uint32_t length = load32(buf);
  if (length > WIRE_MAX_PAYLOAD) return -1;
  if (len - WIRE_HEADER_BYTES < length) return 0;
  frame->type = buf[4];
  frame->stream = load32(buf + 5);
  frame->payload = buf + WIRE_HEADER_BYTES;
  frame->length = length;
  return (long)WIRE_HEADER_BYTES + (long)length;
}

void wire_header(uint8_t *buf, uint8_t type, uint32_t stream, uint32_t length) {
  store32(buf, length);
  buf[4] = type;
  store32(buf + 5, stream);
}

int wire_next(struct wire_cursor *cursor, struct wire_field *field) {
  size_t left = (size_t)(cursor->end - cursor->at);
  if (left == 0) return 0;
  if (left < WIRE_FIELD_BYTES) return -1;
  uint32_t length = load32(cursor->at + 1);
  if (length > left - WIRE_FIELD_BYTES) return -1;
  field->tag = cursor->at[0];
  field->length = length;
  field->value = cursor->at + WIRE_FIELD_BYTES;
  cursor->at += WIRE_FIELD_BYTES + length;
  return 1;
}

bool wire_u32(const struct wire_field *field, uint32_t *out) {
  if (field->length != 4) return false;
  *out = load32(field->value);
  return true;
}

bool wire_u64(const struct wire_field *field, uint64_t *out) {
  if (field->length != 8) return false;
  *out = (uint64_t)load32(field->value) | (uint64_t)load32(field->value + 4) << 32;
  return true;
}

bool wire_str(const struct wire_field *field, char *out, size_t size) {
  if (size == 0 || field->length > size - 1) return false;
  if (field->length > 0 && memchr(field->value, 0, field->length) != NULL) return false;
  if (field->length > 0) memcpy(out, field->value, field->length);
  out[field->length] = 0;
  return true;
}

static uint8_t *reserve(struct wire_out *out, size_t bytes) {
  if (out->full || bytes > out->cap - out->len) {
    out->full = true;
    return NULL;
  }
  uint8_t *at = out->buf + out->len;
  out->len += bytes;
  return at;
}

static uint8_t *put_field(struct wire_out *out, uint8_t tag, uint32_t length) {
  uint8_t *at = reserve(out, WIRE_FIELD_BYTES + (size_t)length);
  if (at == NULL) return NULL;
  at[0] = tag;
  store32(at + 1, length);
  return at + WIRE_FIELD_BYTES;
}

void wire_put_u32(struct wire_out *out, uint8_t tag, uint32_t value) {
  uint8_t *at = put_field(out, tag, 4);
  if (at != NULL) store32(at, value);
}

void wire_put_u64(struct wire_out *out, uint8_t tag, uint64_t value) {
  uint8_t *at = put_field(out, tag, 8);
  if (at == NULL) return;
  store32(at, (uint32_t)value);
  store32(at + 4, (uint32_t)(value >> 32));
}

void wire_put_str(struct wire_out *out, uint8_t tag, const char *value) {
  wire_put_bytes(out, tag, value, strlen(value));
}

void wire_put_bytes(struct wire_out *out, uint8_t tag, const void *value, size_t length) {
  if (length > WIRE_MAX_PAYLOAD) {
    out->full = true;
    return;
  }
  uint8_t *at = put_field(out, tag, (uint32_t)length);
  if (at != NULL && length > 0) memcpy(at, value, length);
}

size_t wire_begin(struct wire_out *out, uint8_t tag) {
  size_t mark = out->len;
  put_field(out, tag, 0);
  return mark;
}

void wire_end(struct wire_out *out, size_t mark) {
  if (out->full) return;
  store32(out->buf + mark + 1, (uint32_t)(out->len - mark - WIRE_FIELD_BYTES));
}
