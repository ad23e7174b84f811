#include "file/path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link/loop.h"
#include "link/reply.h"

#define TEMP_PREFIX ".islet-"

enum { PATH_MAX_LINKS = 40 }; /* the kernel's limit */

void path_strip_slashes(char *path) {
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') path[--length] = 0;
}

int path_follow(const char *path, char out[FIELDS_PATH_SIZE]) {
  if (strlen(path) >= FIELDS_PATH_SIZE) return ENAMETOOLONG;
  strcpy(out, path);
  for (int i = 0; i < PATH_MAX_LINKS; i++) {
    char target[FIELDS_PATH_SIZE];
    path_strip_slashes(out);
    ssize_t n = readlink(out, target, sizeof target - 1);
    if (n < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno;
    target[n] = 0;
    size_t keep = target[0] == '/' ? 0 : (size_t)(strrchr(out, '/') - out) + 1;
    if (keep + (size_t)n >= FIELDS_PATH_SIZE) return ENAMETOOLONG;
    memcpy(out + keep, target, (size_t)n + 1);
  }
  return ELOOP;
}

int path_split(const char *path, char dir[FIELDS_PATH_SIZE], char name[256]) {
  if (strlen(path) >= FIELDS_PATH_SIZE) return ENAMETOOLONG;
  strcpy(dir, path);
  path_strip_slashes(dir);
  char *slash = strrchr(dir, '/');
  if (slash == NULL) return EINVAL;
  const char *last = slash + 1;
  if (*last == 0 || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) return EISDIR;
  if (strlen(last) > NAME_MAX) return ENAMETOOLONG;
  strcpy(name, last);
  slash[slash == dir ? 1 : 0] = 0;
  return 0;
}

void path_blamed(int err, const char *path, char out[FIELDS_PATH_SIZE]) {
  char name[256];
  struct stat st;
  bool missing = err == ENOENT && path_split(path, out, name) == 0 && stat(out, &st) < 0;
  if (!missing) snprintf(out, FIELDS_PATH_SIZE, "%s", path);
}

int path_make(const char *path, const struct user_ids *owner) {
  char at[FIELDS_PATH_SIZE];
  struct stat st;
  if (strlen(path) >= sizeof at) return ENAMETOOLONG;
  if (stat(path, &st) == 0) return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
  strcpy(at, path);
  path_strip_slashes(at);
  for (char *slash = at;;) {
    slash = strchr(slash + 1, '/');
    if (slash != NULL) *slash = 0;
    if (mkdir(at, 0755) == 0) {
      if (owner != NULL && lchown(at, owner->uid, owner->gid) < 0) return errno;
    } else if (errno != EEXIST) {
      return errno;
    }
    if (slash == NULL) break;
    *slash = '/';
  }
  if (stat(path, &st) < 0) return errno;
  return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

void path_temp(char name[PATH_TEMP_SIZE]) {
  uint64_t random = 0;
  static uint64_t counter;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) {
    random = loop_now() << 20 | (uint64_t)getpid() << 8 | (counter++ & 255);
  }
  snprintf(name, PATH_TEMP_SIZE, TEMP_PREFIX "%016llx", (unsigned long long)random);
}

bool path_is_temp(const char *name) {
  const size_t prefix = sizeof TEMP_PREFIX - 1;
  return strncmp(name, TEMP_PREFIX, prefix) == 0 && strspn(name + prefix, "0123456789abcdef") == 16 && name[prefix + 16] == 0;
}

bool path_owner(uint32_t stream, const char *owner, struct user_ids *ids, bool *set) {
  *set = owner[0] != 0;
  if (!*set) return true;
  int kind = user_lookup(owner, ids);
  if (kind == 0) return true;
  char message[FIELDS_OWNER_SIZE + 64];
  snprintf(message, sizeof message, "no such user or group: %.255s", owner);
  reply_error(stream, kind, "user", message);
  return false;
}

bool path_chown_matters(void) {
  return geteuid() == 0;
}
