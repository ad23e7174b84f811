#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "message.h"

enum { USER_MAX_FILE = 4 * 1024 * 1024, USER_MAX_NAME = 255 };

/* A colon-separated line, its columns cut in place. */
struct row {
  char *column[7];
  size_t count;
};

static char *read_file(const char *path);
static bool next_row(char **at, struct row *row);
static bool number(const char *text, unsigned *out);
static bool find_user(const char *who, struct user_ids *ids, char *name);
static bool find_group(const char *group, gid_t *gid);
static void find_groups(const char *name, struct user_ids *ids);

int user_lookup(const char *spec, struct user_ids *ids) {
  char who[USER_MAX_NAME + 1], name[USER_MAX_NAME + 1] = "";
  const char *colon = strchr(spec, ':');
  size_t length = colon == NULL ? strlen(spec) : (size_t)(colon - spec);
  if (length == 0 || length > USER_MAX_NAME) return KIND_NO_USER;
  memcpy(who, spec, length);
  who[length] = 0;
  /* uid:gid needs no lookup. */
  unsigned uid, gid;
  if (colon != NULL && number(who, &uid) && number(colon + 1, &gid)) {
    *ids = (struct user_ids){.uid = uid, .gid = gid, .groups = {gid}, .group_count = 1};
    return 0;
  }
  if (!find_user(who, ids, name)) return KIND_NO_USER;
  if (colon != NULL && !find_group(colon + 1, &ids->gid)) return KIND_NO_USER;
  ids->groups[0] = ids->gid;
  ids->group_count = 1;
  if (colon == NULL && name[0] != 0) find_groups(name, ids);
  return 0;
}

static void copy_column(char *out, size_t size, const struct row *row, size_t column) {
  if (row->count > column && strlen(row->column[column]) < size) strcpy(out, row->column[column]);
}

void user_profile(uid_t uid, struct user_profile *profile) {
  *profile = (struct user_profile){0};
  char *text = read_file("/etc/passwd"), *at = text;
  struct row row;
  unsigned found;
  while (text != NULL && next_row(&at, &row)) {
    if (row.count < 3 || !number(row.column[2], &found) || found != uid) continue;
    copy_column(profile->name, sizeof profile->name, &row, 0);
    copy_column(profile->home, sizeof profile->home, &row, 5);
    copy_column(profile->shell, sizeof profile->shell, &row, 6);
    break;
  }
  free(text);
}

bool user_privileged(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {0};
  if (syscall(SYS_capget, &header, data) < 0) return geteuid() == 0;
  uint32_t need = 1u << CAP_SETUID | 1u << CAP_SETGID;
  return (data[0].effective & need) == need;
}

/* Searches by name first: a user may be called "1000". */
static bool find_user(const char *who, struct user_ids *ids, char *name) {
  unsigned wanted = 0, uid, gid;
  bool numeric = number(who, &wanted);
  bool found = false;
  char *text = read_file("/etc/passwd"), *at = text;
  for (int by_number = 0; text != NULL && by_number <= numeric && !found; by_number++) {
    struct row row;
    if (by_number) {
      free(text);
      at = text = read_file("/etc/passwd");
      if (text == NULL) break;
    }
    while (!found && next_row(&at, &row)) {
      if (row.count < 4 || !number(row.column[2], &uid) || !number(row.column[3], &gid)) continue;
      if (by_number ? uid != wanted : strcmp(row.column[0], who) != 0) continue;
      *ids = (struct user_ids){.uid = uid, .gid = gid};
      if (strlen(row.column[0]) <= USER_MAX_NAME) strcpy(name, row.column[0]);
      found = true;
    }
  }
  free(text);
  if (!found && numeric) *ids = (struct user_ids){.uid = wanted, .gid = wanted};
  return found || numeric;
}

static bool find_group(const char *group, gid_t *gid) {
  unsigned value;
  bool found = false;
  char *text = read_file("/etc/group"), *at = text;
  struct row row;
  while (!found && text != NULL && next_row(&at, &row)) {
    found = row.count >= 3 && strcmp(row.column[0], group) == 0 && number(row.column[2], &value);
  }
  free(text);
  if (!found && !number(group, &value)) return false;
  *gid = value;
  return true;
}

static void find_groups(const char *name, struct user_ids *ids) {
  char *text = read_file("/etc/group"), *at = text;
  struct row row;
  while (text != NULL && ids->group_count < USER_MAX_GROUPS && next_row(&at, &row)) {
    unsigned gid;
    if (row.count < 4 || !number(row.column[2], &gid) || gid == ids->gid) continue;
    char *members = row.column[3], *member;
    while ((member = strsep(&members, ",")) != NULL) {
      if (strcmp(member, name) != 0) continue;
      ids->groups[ids->group_count++] = gid;
      break;
    }
  }
  free(text);
}

/* The whole file with a NUL; NULL when it cannot be read or is too large. */
static char *read_file(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat st;
  char *text = NULL;
  if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= USER_MAX_FILE) {
    size_t size = (size_t)st.st_size, length = 0;
    text = malloc(size + 1);
    while (text != NULL && length < size) {
      ssize_t n = read(fd, text + length, size - length);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      length += (size_t)n;
    }
    if (text != NULL) text[length] = 0;
  }
  if (fd >= 0) close(fd);
  return text;
}

static bool next_row(char **at, struct row *row) {
  char *line = strsep(at, "\n");
  if (line == NULL) return false;
  row->count = 0;
  while (line != NULL && row->count < 7) row->column[row->count++] = strsep(&line, ":");
  return true;
}

static bool number(const char *text, unsigned *out) {
  uint64_t value = 0;
  size_t digits = 0;
  for (; text[digits] >= '0' && text[digits] <= '9' && digits < 11; digits++) {
    value = value * 10 + (uint64_t)(text[digits] - '0');
  }
  /* UINT32_MAX means "leave unchanged" to the kernel, so it is not a valid id. */
  if (digits == 0 || text[digits] != 0 || value >= UINT32_MAX) return false;
  *out = (unsigned)value;
  return true;
}
