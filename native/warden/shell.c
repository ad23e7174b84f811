#include "shell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Of what a shell can bring along, whatever is a mount of its own. Looked at from outside, and followed nowhere. */
static int find_carried(struct shell *shell, struct fail *fail) {
  static const char *const names[] = {"proc", "dev", "sys", "tmp", ".islet"};
  AUTO_CLOSE int root = openat(shell->proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return fail_errno(fail, "shell", "root");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct statx at;
    if (statx(root, names[i], AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &at) < 0) {
      if (errno == ENOENT) continue;
      return fail_errno(fail, "shell", "stat %s", names[i]);
    }
    if (at.stx_attributes & STATX_ATTR_MOUNT_ROOT) shell->carried[shell->carrieds++] = names[i];
  }
  return 0;
}

int shell_open(uint32_t pid, uint32_t uid_base, struct shell *shell, struct fail *fail) {
  char path[32];
  *shell = (struct shell){-1, -1, -1, -1, -1, -1, {0}, 0};
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
  if (find_carried(shell, fail) < 0) return -1;
  /* Alive now, so /proc/<pid> was this process all along. */
  if (syscall(SYS_pidfd_send_signal, shell->pidfd, 0, NULL, 0) < 0) return fail_errno(fail, "shell", "process %u", pid);
  return 0;
}
