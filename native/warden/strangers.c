/*
 * A new mount namespace begins as a copy of the host's, so it would keep alive every filesystem mounted at that moment:
 * the pool of another server could not be let go of while this warden runs. So all mounts that the warden has no
 * business with are dropped from its own namespace at boot.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "strangers.h"

enum { MAX_MOUNTS = 4096 };

static bool is_below(const char *path, const char *directory) {
  size_t length = strlen(directory);
  if (strcmp(directory, "/") == 0) return true;
  return strncmp(path, directory, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* A mount is needed when a kept directory is in it, or when it is in a kept directory. */
static bool is_needed(const char *mount, const char *const *keep) {
  for (; *keep != NULL; keep++) {
    if (is_below(*keep, mount) || is_below(mount, *keep)) return true;
  }
  return false;
}

/* mountinfo writes space, tab, newline and backslash as \ooo. */
static void unescape(char *text) {
  char *out = text;
  for (const char *in = text; *in != 0; out++) {
    if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] && in[3]) {
      *out = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
      in += 4;
    } else {
      *out = *in++;
    }
  }
  *out = 0;
}

void drop_strange_mounts(const char *const *keep) {
  static char *found[MAX_MOUNTS];
  size_t count = 0;
  FILE *file = fopen("/proc/self/mountinfo", "re");
  char *line = NULL;
  size_t size = 0;
  while (file != NULL && count < MAX_MOUNTS && getline(&line, &size, file) > 0) {
    char path[PATH_MAX];
    if (sscanf(line, "%*d %*d %*s %*s %4095s", path) != 1) continue;
    unescape(path);
    if (!is_needed(path, keep)) found[count++] = strdup(path);
  }
  free(line);
  if (file != NULL) fclose(file);
  /* The last ones are mounted on top of the first ones. One that is gone already went with the one it was in. */
  while (count-- > 0) {
    if (found[count] != NULL) umount2(found[count], MNT_DETACH | UMOUNT_NOFOLLOW);
    free(found[count]);
  }
}
