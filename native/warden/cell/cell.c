#include "cell/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int check_map(const struct cell *cell, const char *file, uint32_t uid_base, struct fail *fail) {
  char text[256];
  int fd = openat(cell->proc_fd, file, O_RDONLY | O_CLOEXEC);
  if (io_take_text(fd, text, sizeof text) < 0) return fail_errno(fail, "cell", "%s", file);
  unsigned inside, outside, count;
  int used = 0;
  if (sscanf(text, " %u %u %u %n", &inside, &outside, &count, &used) != 3 || text[used] != 0 || inside != 0 ||
      outside != uid_base || count != UIDS_PER_SANDBOX) {
    return fail_kind(fail, KIND_DENIED, "cell", "%s is not 0 %u %u", file, uid_base, UIDS_PER_SANDBOX);
  }
  return 0;
}

static int open_namespace(const struct cell *cell, const char *name, struct fail *fail) {
  char path[16];
  snprintf(path, sizeof path, "ns/%s", name);
  int fd = openat(cell->proc_fd, path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? fail_errno(fail, "cell", "%s", path) : fd;
}

/* Finds which of the known names are mount points in the cell. Looks from outside and follows no symlink. */
static int find_carried(struct cell *cell, struct fail *fail) {
  static const char *const names[] = {"proc", "dev", "sys", "tmp", ".islet"};
  AUTO_CLOSE int root = openat(cell->proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return fail_errno(fail, "cell", "root");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct statx at;
    if (statx(root, names[i], AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &at) < 0) {
      if (errno == ENOENT) continue;
      return fail_errno(fail, "cell", "stat %s", names[i]);
    }
    if (at.stx_attributes & STATX_ATTR_MOUNT_ROOT) cell->carried[cell->carrieds++] = names[i];
  }
  return 0;
}

int cell_open(uint32_t pid, uint32_t uid_base, struct cell *cell, struct fail *fail) {
  char path[32];
  *cell = (struct cell){-1, -1, -1, -1, -1, -1, {0}, 0};
  cell->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (cell->pidfd < 0) return fail_errno(fail, "cell", "process %u", pid);
  snprintf(path, sizeof path, "/proc/%u", pid);
  cell->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (cell->proc_fd < 0) return fail_errno(fail, "cell", "%s", path);
  if (check_map(cell, "uid_map", uid_base, fail) < 0 || check_map(cell, "gid_map", uid_base, fail) < 0) return -1;
  if ((cell->user_ns = open_namespace(cell, "user", fail)) < 0) return -1;
  if ((cell->mount_ns = open_namespace(cell, "mnt", fail)) < 0) return -1;
  if ((cell->uts_ns = open_namespace(cell, "uts", fail)) < 0) return -1;
  if ((cell->net_ns = open_namespace(cell, "net", fail)) < 0) return -1;
  if (find_carried(cell, fail) < 0) return -1;
  /* The process is alive, so /proc/<pid> was this process all the time. */
  if (syscall(SYS_pidfd_send_signal, cell->pidfd, 0, NULL, 0) < 0) return fail_errno(fail, "cell", "process %u", pid);
  return 0;
}
