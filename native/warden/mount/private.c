#include "mount/private.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "io.h"

enum { MAX_MOUNTS = 4096, LINE_BYTES = 8192 };

/* Whether path is `parent` or below it. */
static bool is_below(const char *path, const char *parent) {
  size_t length = strlen(parent);
  if (length == 1) return true; /* "/" */
  return strncmp(path, parent, length) == 0 && (path[length] == 0 || path[length] == '/');
}

static bool is_needed(const char *mount_point, const char *const keep[]) {
  for (; *keep != NULL; keep++) {
    if (is_below(*keep, mount_point) || is_below(mount_point, *keep)) return true;
  }
  return false;
}

/* mountinfo writes blanks, newlines and backslashes as octal escapes. */
static void unescape(char *text) {
  char *out = text;
  for (const char *in = text; *in; in++) {
    bool octal = in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' && in[3] >= '0' && in[3] <= '7';
    *out++ = octal ? (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0')) : *in;
    if (octal) in += 3;
  }
  *out = 0;
}

/* Unmounts from last to first: a mount is listed after the mount it is on. */
static int drop_unneeded(const char *const keep[]) {
  static char *points[MAX_MOUNTS];
  static char line[LINE_BYTES], point[LINE_BYTES];
  AUTO_CLOSE_FILE FILE *file = fopen("/proc/self/mountinfo", "re");
  if (file == NULL) return -1;
  unsigned count = 0;
  while (count < MAX_MOUNTS && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "%*d %*d %*s %*s %8191s", point) != 1) continue;
    unescape(point);
    if (!is_needed(point, keep) && (points[count] = strdup(point)) != NULL) count++;
  }
  while (count > 0) {
    umount2(points[--count], MNT_DETACH | UMOUNT_NOFOLLOW); /* failures are ignored */
    free(points[count]);
  }
  return 0;
}

int private_enter(const char *const keep[]) {
  if (unshare(CLONE_NEWNS) < 0) return -1;
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) return -1;
  return drop_unneeded(keep);
}
