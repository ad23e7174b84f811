/*
 * fields: reads the fields of a request into variables.
 *
 *     char path[FIELDS_PATH_SIZE] = "";
 *     uint32_t follow = 0;
 *     const struct fields_want want[] = {FIELDS_PATH(STAT_path, path), FIELDS_U32(STAT_follow, &follow)};
 *     if (!fields_read(req, want, 2)) return;   // BAD_REQUEST has been sent
 *
 * A field that is absent leaves its variable as it was, so the initial value is the default. Only a PATH must be
 * present. Unknown tags are skipped; lists are read by their users with fields_each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "message.h"
#include "wire.h"

enum { FIELDS_PATH_SIZE = MAX_PATH + 1, FIELDS_OWNER_SIZE = 256 };

enum fields_kind { FIELDS_KIND_U32, FIELDS_KIND_U64, FIELDS_KIND_STR, FIELDS_KIND_PATH, FIELDS_KIND_ANY };

struct fields_want {
  uint8_t tag;
  enum fields_kind kind;
  void *out;
  size_t size;
};

#define FIELDS_U32(tag, out) {tag, FIELDS_KIND_U32, out, 0}
#define FIELDS_U64(tag, out) {tag, FIELDS_KIND_U64, out, 0}
/* A char array; the string must fit and hold no NUL. */
#define FIELDS_STR(tag, array) {tag, FIELDS_KIND_STR, array, sizeof(array)}
/* The same, and it must be an absolute path. */
#define FIELDS_PATH(tag, array) {tag, FIELDS_KIND_PATH, array, sizeof(array)}
/* A struct wire_field: the raw value; its `value` stays NULL when absent. */
#define FIELDS_ANY(tag, out) {tag, FIELDS_KIND_ANY, out, 0}

/* False: a field was bad and ERROR BAD_REQUEST with stage "request" has been sent on the request's stream. */
bool fields_read(const struct wire_frame *req, const struct fields_want *want, size_t count);
/* The same for the fields of a record; sends nothing. */
bool fields_read_record(const struct wire_field *record, const struct fields_want *want, size_t count);
/* Steps through the fields with one tag: cursor starts as fields_begin(req). False: no more. */
struct wire_cursor fields_begin(const struct wire_frame *req);
bool fields_each(struct wire_cursor *cursor, uint8_t tag, struct wire_field *field);
void fields_bad(const struct wire_frame *req, const char *message);
