/* json: as much of JSON as one small program needs: writes text, and finds a string in an answer. */
#ifndef ISLET_JSON_H
#define ISLET_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct json_out {
  char *buf;
  size_t len, cap;
  bool full; /* something did not fit, and what is there is of no use */
};

/* JSON as it is. */
void json_raw(struct json_out *out, const char *text);
/* What stands between the quotes of a string; bytes that are not UTF-8 become U+FFFD. */
void json_text(struct json_out *out, const char *text);
/* The first string under this name, however deep, unescaped into `text`; false when there is none. */
bool json_find(const char *json, const char *name, char *text, size_t size);

#endif
