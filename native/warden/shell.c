#include "shell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOUNTINFO_BYTES = 256 * 1024 };

static int check_map(const struct shell *shell, const char *file, uint32_t uid_base, struct fail *fail) {
  char text[256];
  AUTO_CLOSE int fd = openat(shell->proc_fd, file, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (got < 0) return fail_errno(fail, "shell", "%s", file);
  text[got] = 0;
  unsigned inside, outside, count;
  int used = 0;
  if (sscanf(text, " %u %u %u %n", &inside, &outside, &count, &used) != 3 || text[used] != 0 || inside != 0 ||
      outside != uid_base || count != UIDS_PER_SANDBOX) {
    return fail_kind(fail, KIND_DENIED, "shell", "%s is not 0 %u %u", file, uid_base, UIDS_PER_SANDBOX);
  }
  return 0;
}

static int open_namespace(const struct shell *shell, const char *name, struct fail *fail) {
  char path[16];
  snprintf(path, sizeof path, "ns/%s", name);
  int fd = openat(shell->proc_fd, path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? fail_errno(fail, "shell", "%s", path) : fd;
}

/* The name when path is "/<name>" and names nothing odd. */
static const char *top_level(const char *path) {
  size_t length = strlen(path);
  if (path[0] != '/' || length < 2 || length > 30) return NULL;
  return strspn(path + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == length - 1 ? path + 1 : NULL;
}

/* Mounts right below the root that are not an overlay of an earlier bind. The root is the last mount at "/". */
static int find_carried(struct shell *shell, char *text, struct fail *fail) {
  int root = -1;
  for (int pass = 0; pass < 2; pass++) {
    char *save = NULL, *copy = pass == 0 ? strdup(text) : text;
    if (copy == NULL) return fail_errno(fail, "shell", "mountinfo");
    for (char *line = strtok_r(copy, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
      int id, parent;
      char at[64], type[32];
      const char *dash = strstr(line, " - ");
      if (dash == NULL || sscanf(line, "%d %d %*s %*s %63s ", &id, &parent, at) != 3) continue;
      if (sscanf(dash, " - %31s", type) != 1) continue;
      if (pass == 0) {
        if (strcmp(at, "/") == 0) root = id;
        continue;
      }
      const char *name = parent == root ? top_level(at) : NULL;
      if (name == NULL || strcmp(type, "overlay") == 0 || shell->carrieds == MAX_CARRIED) continue;
      snprintf(shell->carried[shell->carrieds++], sizeof shell->carried[0], "%.30s", name);
    }
    if (pass == 0) free(copy);
  }
  return root < 0 ? fail_kind(fail, KIND_SYSTEM, "shell", "mountinfo shows no root") : 0;
}

static int read_mounts(struct shell *shell, struct fail *fail) {
  char *text = malloc(MOUNTINFO_BYTES);
  if (text == NULL) return fail_errno(fail, "shell", "mountinfo");
  AUTO_CLOSE int fd = openat(shell->proc_fd, "mountinfo", O_RDONLY | O_CLOEXEC);
  size_t used = 0;
  ssize_t got = fd < 0 ? -1 : 1;
  while (got > 0 && used < MOUNTINFO_BYTES - 1) {
    got = read(fd, text + used, MOUNTINFO_BYTES - 1 - used);
    if (got > 0) used += (size_t)got;
  }
  text[used] = 0;
  int result = got < 0 ? fail_errno(fail, "shell", "mountinfo") : find_carried(shell, text, fail);
  free(text);
  return result;
}

int shell_open(uint32_t pid, uint32_t uid_base, struct shell *shell, struct fail *fail) {
  char path[32];
  *shell = (struct shell){-1, -1, -1, -1, -1, -1, {{0}}, 0};
  shell->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (shell->pidfd < 0) return fail_errno(fail, "shell", "process %u", pid);
  snprintf(path, sizeof path, "/proc/%u", pid);
  shell->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (shell->proc_fd < 0) return fail_errno(fail, "shell", "%s", path);
  if (check_map(shell, "uid_map", uid_base, fail) < 0 || check_map(shell, "gid_map", uid_base, fail) < 0) return -1;
  if ((shell->user_ns = open_namespace(shell, "user", fail)) < 0) return -1;
  if ((shell->mount_ns = open_namespace(shell, "mnt", fail)) < 0) return -1;
  if ((shell->uts_ns = open_namespace(shell, "uts", fail)) < 0) return -1;
  if ((shell->net_ns = open_namespace(shell, "net", fail)) < 0) return -1;
  if (read_mounts(shell, fail) < 0) return -1;
  /* Alive now, so /proc/<pid> was this process all along. */
  if (syscall(SYS_pidfd_send_signal, shell->pidfd, 0, NULL, 0) < 0) return fail_errno(fail, "shell", "process %u", pid);
  return 0;
}
