#include "link/fields.h"

#include <stdio.h>
#include <string.h>

#include "link/reply.h"

static bool take(const struct wire_field *field, const struct fields_want *want) {
  switch (want->kind) {
    case FIELDS_KIND_U32: return wire_u32(field, want->out);
    case FIELDS_KIND_U64: return wire_u64(field, want->out);
    case FIELDS_KIND_STR: return wire_str(field, want->out, want->size);
    case FIELDS_KIND_PATH: return field->length > 0 && field->value[0] == '/' && wire_str(field, want->out, want->size);
    case FIELDS_KIND_ANY: memcpy(want->out, field, sizeof *field); return true;
  }
  return false;
}

/* 0: success; -1: the payload is not a run of fields; else the tag that is bad or missing. */
static int read_all(struct wire_cursor cursor, const struct fields_want *want, size_t count) {
  struct wire_field field;
  uint32_t seen = 0;
  int more;
  while ((more = wire_next(&cursor, &field)) == 1) {
    for (size_t i = 0; i < count; i++) {
      if (want[i].tag != field.tag) continue;
      if (!take(&field, &want[i])) return field.tag;
      seen |= 1u << i;
    }
  }
  if (more < 0) return -1;
  for (size_t i = 0; i < count; i++) {
    if (want[i].kind == FIELDS_KIND_PATH && !(seen & 1u << i)) return want[i].tag;
  }
  return 0;
}

bool fields_read(const struct wire_frame *req, const struct fields_want *want, size_t count) {
  int bad = read_all(fields_begin(req), want, count);
  if (bad == 0) return true;
  char message[96];
  if (bad < 0) snprintf(message, sizeof message, "message %d is not a run of fields", req->type);
  else snprintf(message, sizeof message, "field %d of message %d is missing, malformed or too long", bad, req->type);
  fields_bad(req, message);
  return false;
}

bool fields_read_record(const struct wire_field *record, const struct fields_want *want, size_t count) {
  struct wire_cursor cursor = {record->value, record->value + record->length};
  return read_all(cursor, want, count) == 0;
}

struct wire_cursor fields_begin(const struct wire_frame *req) {
  return (struct wire_cursor){req->payload, req->payload + req->length};
}

bool fields_each(struct wire_cursor *cursor, uint8_t tag, struct wire_field *field) {
  while (wire_next(cursor, field) == 1) {
    if (field->tag == tag) return true;
  }
  return false;
}

void fields_bad(const struct wire_frame *req, const char *message) {
  reply_error(req->stream, KIND_BAD_REQUEST, "request", message);
}
