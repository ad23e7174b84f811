#include "watch/ignore.h"

#include <stdlib.h>
#include <string.h>

#include "link/fields.h"
#include "link/reply.h"
#include "message.h"

enum { WATCH_IGNORE_MAX = 1024, WATCH_IGNORE_LENGTH = 1024 };

static bool usable(const struct wire_field *field) {
  return field->length > 0 && field->length <= WATCH_IGNORE_LENGTH && memchr(field->value, 0, field->length) == NULL &&
         memchr(field->value, '/', field->length) == NULL;
}

bool watch_ignore_read(struct watch_ignore *ignore, const struct wire_frame *req) {
  struct wire_cursor cursor = fields_begin(req);
  struct wire_field field;
  size_t count = 0, bytes = 0;
  while (fields_each(&cursor, WATCH_ignore, &field)) {
    if (!usable(&field) || ++count > WATCH_IGNORE_MAX) {
      fields_bad(req, "an ignored name is empty or too long, holds a slash or a NUL, or there are too many");
      return false;
    }
    bytes += field.length + 1;
  }
  if (count == 0) return true;
  ignore->patterns = reply_calloc(req->stream, bytes);
  if (ignore->patterns == NULL) return false;
  ignore->count = count;
  char *at = ignore->patterns;
  cursor = fields_begin(req);
  while (fields_each(&cursor, WATCH_ignore, &field)) {
    memcpy(at, field.value, field.length);
    at[field.length] = 0;
    at += field.length + 1;
  }
  return true;
}

/* Backtracking to the latest star is enough: whatever an earlier star could match, the latest one can match, too. */
static bool matches(const char *pattern, const char *name) {
  const char *star = NULL, *resume = name;
  while (*name != 0) {
    if (*pattern == '*') {
      star = ++pattern;
      resume = name;
      continue;
    }
    const char *literal = *pattern == '\\' && pattern[1] != 0 ? pattern + 1 : pattern;
    if (*literal == *name) {
      pattern = literal + 1;
      name++;
    } else if (star != NULL) {
      pattern = star;
      name = ++resume;
    } else {
      return false;
    }
  }
  while (*pattern == '*') pattern++;
  return *pattern == 0;
}

bool watch_ignored(const struct watch_ignore *ignore, const char *name) {
  const char *pattern = ignore->patterns;
  for (size_t i = 0; i < ignore->count; i++, pattern += strlen(pattern) + 1) {
    if (matches(pattern, name)) return true;
  }
  return false;
}

void watch_ignore_free(struct watch_ignore *ignore) {
  free(ignore->patterns);
  *ignore = (struct watch_ignore){0};
}
