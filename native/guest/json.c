#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct json_out *out, const char *bytes, size_t length) {
  if (length > out->cap - out->len) out->full = true;
  if (out->full) return;
  memcpy(out->buf + out->len, bytes, length);
  out->len += length;
}

void json_raw(struct json_out *out, const char *text) {
  put(out, text, strlen(text));
}

/* The length of the UTF-8 character at `at`; 0 if it is not valid. The NUL at the end is not a continuation byte. */
static size_t character(const unsigned char *at) {
  if (at[0] < 0x80) return 1;
  size_t length = at[0] >= 0xc2 && at[0] <= 0xdf ? 2 : at[0] >= 0xe0 && at[0] <= 0xef ? 3 : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4 : 0;
  for (size_t i = 1; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
  bool surrogate = at[0] == 0xed && at[1] > 0x9f;
  bool beyond = at[0] == 0xf4 && at[1] > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

void json_text(struct json_out *out, const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  while (*at != 0) {
    size_t length = character(at);
    char escaped[8];
    if (length == 0) {
      json_raw(out, "\xef\xbf\xbd");
      length = 1;
    } else if (*at < 0x20 || *at == 0x7f) {
      snprintf(escaped, sizeof escaped, "\\u%04x", *at);
      json_raw(out, escaped);
    } else {
      if (*at == '"' || *at == '\\') json_raw(out, "\\");
      put(out, (const char *)at, length);
    }
    at += length;
  }
}

/* Decodes the escape after a backslash and returns its length. Handles what our server writes; \\u becomes '?'. */
static size_t unescape(const char *at, char *character_out) {
  static const char names[] = "nrtbf", values[] = "\n\r\t\b\f";
  const char *name = *at == 0 ? NULL : strchr(names, *at);
  *character_out = name != NULL ? values[name - names] : *at == 'u' ? '?' : *at;
  return *at == 'u' && strlen(at) >= 5 ? 5 : *at != 0;
}

bool json_find(const char *json, const char *name, char *text, size_t size) {
  char key[64];
  snprintf(key, sizeof key, "\"%s\":\"", name);
  const char *at = strstr(json, key);
  if (at == NULL) return false;
  at += strlen(key);
  size_t length = 0;
  while (*at != 0 && *at != '"' && length < size - 1) {
    char one = *at++;
    if (one == '\\') at += unescape(at, &one);
    text[length++] = one;
  }
  text[length] = 0;
  return true;
}
