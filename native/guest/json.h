/* json: the little JSON that islet-signal needs: writes strings, and finds one in an answer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct json_out {
  char *buf;
  size_t len, cap;
  bool full; /* something did not fit: the text is unusable */
};

/* Appends text that is JSON already. */
void json_raw(struct json_out *out, const char *text);
/* Appends the inside of a string, escaped; bytes that are not UTF-8 become U+FFFD. */
void json_text(struct json_out *out, const char *text);
/* Unescapes the first string with this name, at any depth, into `text`; false if there is none. */
bool json_find(const char *json, const char *name, char *text, size_t size);
