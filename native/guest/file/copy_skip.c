#include "file/copy_skip.h"

#include <stdlib.h>
#include <string.h>

#include "link/fields.h"
#include "link/reply.h"
#include "message.h"

static int compare(const void *one, const void *other) {
  const struct wire_field *a = one, *b = other;
  int order = memcmp(a->value, b->value, a->length < b->length ? a->length : b->length);
  return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

bool copy_skip_read(struct copy_skip *skip, const struct wire_frame *req) {
  struct wire_cursor cursor = fields_begin(req);
  struct wire_field field;
  size_t count = 0;
  while (fields_each(&cursor, COPY_skip, &field)) {
    if (field.length == 0 || field.length > MAX_PATH || memchr(field.value, 0, field.length) != NULL) {
      fields_bad(req, "a skipped path is empty, too long or holds a NUL");
      return false;
    }
    count++;
  }
  if (count == 0) return true;
  skip->paths = reply_calloc(req->stream, count * sizeof *skip->paths);
  if (skip->paths == NULL) return false;
  cursor = fields_begin(req);
  while (fields_each(&cursor, COPY_skip, &field)) skip->paths[skip->count++] = field;
  qsort(skip->paths, count, sizeof *skip->paths, compare);
  return true;
}

bool copy_skips(const struct copy_skip *skip, const char *path) {
  const struct wire_field key = {.value = (const uint8_t *)path, .length = strlen(path)};
  return skip->count > 0 && bsearch(&key, skip->paths, skip->count, sizeof key, compare) != NULL;
}

void copy_skip_free(struct copy_skip *skip) {
  free(skip->paths);
  *skip = (struct copy_skip){0};
}
