#include "cell/bind.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cell/cell.h"
#include "cgroup/cgroup.h"
#include "mount/cred.h"
#include "mount/etc.h"
#include "mount/overlay.h"
#include "net/net.h"
#include "paths.h"

/* A real directory `name` in root: anything else that an image put there (a symlink, a file) is replaced, never followed. */
static int make_mount_point(int root, const char *name, struct fail *fail) {
  struct stat stat;
  if (fstatat(root, name, &stat, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISDIR(stat.st_mode)) return 0;
    if (unlinkat(root, name, 0) < 0) return fail_errno(fail, "mount-point", "unlink %s", name);
  } else if (errno != ENOENT) {
    return fail_errno(fail, "mount-point", "stat %s", name);
  }
  if (mkdirat(root, name, 0755) < 0) return fail_errno(fail, "mount-point", "mkdir %s", name);
  return 0;
}

int bind_mount_trees(const struct bind *bind, int user_ns, const char *const *points, unsigned count, int *roots, struct fail *fail) {
  for (unsigned i = 0; i < bind->trees; i++) {
    roots[i] = overlay_mount(&bind->tree[i], bind->layer, user_ns, fail);
    if (roots[i] < 0) return -1;
  }
  for (unsigned i = 0; i < count; i++) {
    if (make_mount_point(roots[0], points[i], fail) < 0) return -1;
  }
  for (unsigned i = 1; i < bind->trees; i++) {
    if (make_mount_point(roots[0], bind->tree[i].at + 1, fail) < 0) return -1;
  }
  return 0;
}

int bind_attach(int mount_fd, int to, const char *name, struct fail *fail) {
  AUTO_CLOSE int target = path_open(to, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (target < 0) return fail_errno(fail, "attach", "open %s", name);
  if (move_mount(mount_fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0) {
    return fail_errno(fail, "attach", "move %s", name);
  }
  return 0;
}

/* Moves the mount at <from>/<name> to <to>/<name>. */
static int carry(int from, int to, const char *name, struct fail *fail) {
  AUTO_CLOSE int source = path_open(from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  return source < 0 ? fail_errno(fail, "carry", "open %s", name) : bind_attach(source, to, name, fail);
}

/* With the new root mounted over the old one: moves the cell's mounts and the other trees into it, then swaps the roots. */
static int change_root(const struct bind *bind, const struct cell *cell, int old, const int *roots, struct fail *fail) {
  unsigned carried = 0;
  int result = 0;
  for (unsigned i = 1; i < bind->trees && result == 0; i++) result = bind_attach(roots[i], roots[0], bind->tree[i].at + 1, fail);
  while (result == 0 && carried < cell->carrieds) {
    result = carry(old, roots[0], cell->carried[carried], fail);
    if (result == 0) carried++;
  }
  if (result == 0 && fchdir(roots[0]) < 0) result = fail_errno(fail, "pivot", "fchdir");
  if (result == 0 && syscall(SYS_pivot_root, ".", ".") < 0) result = fail_errno(fail, "pivot", "pivot_root");
  if (result == 0) return 0;
  struct fail ignored;
  while (carried > 0) carry(roots[0], old, cell->carried[--carried], &ignored);
  return -1;
}

/* Leaves this process in the cell's mount namespace. */
static int attach_roots(const struct bind *bind, const struct cell *cell, const int *roots, struct fail *fail) {
  if (setns(cell->mount_ns, CLONE_NEWNS) < 0) return fail_errno(fail, "setns", "mount namespace");
  AUTO_CLOSE int old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (old < 0) return fail_errno(fail, "attach", "open /");
  if (move_mount(roots[0], "", old, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0) {
    return fail_errno(fail, "attach", "move the root");
  }
  if (change_root(bind, cell, old, roots, fail) < 0) {
    if (fchdir(roots[0]) == 0) umount2(".", MNT_DETACH);
    return -1;
  }
  /* The old root is now mounted over the new one; unmounting it makes the new one visible. */
  if (fchdir(old) < 0 || umount2(".", MNT_DETACH) < 0) return fail_errno(fail, "pivot", "detach the old root");
  return 0;
}

/*
 * Limits /dev/shm to half of the memory limit. Shared memory counts against the limit and cannot be reclaimed: a sandbox that
 * filled its limit with it could not start another process. Does nothing in a cell without /dev/shm.
 */
static int size_shared_memory(const struct bind *bind, struct fail *fail) {
  struct statfs filesystem;
  char size[32];
  if (!bind->limits.has_memory || bind->limits.memory_bytes == 0) return 0;
  AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  AUTO_CLOSE int shm = root < 0 ? -1 : path_open_dir(root, "dev/shm");
  if (shm < 0 || fstatfs(shm, &filesystem) < 0 || filesystem.f_type != TMPFS_MAGIC) return 0;
  AUTO_CLOSE int context = fspick(shm, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);
  snprintf(size, sizeof size, "%llu", (unsigned long long)bind->limits.memory_bytes / 2);
  if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
      fsconfig(context, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0) {
    return fail_errno(fail, "shm", "size of /dev/shm");
  }
  return 0;
}

static int set_hostname(const struct cell *cell, const char *hostname, struct fail *fail) {
  if (hostname[0] == 0) return 0;
  if (setns(cell->uts_ns, CLONE_NEWUTS) < 0) return fail_errno(fail, "setns", "uts namespace");
  if (sethostname(hostname, strlen(hostname)) < 0) return fail_errno(fail, "hostname", "sethostname");
  return 0;
}

static int bind_steps(const struct bind *bind, struct cell *cell, int *roots, int *undo, bool *etc, struct fail *fail) {
  if (cell_open(bind->pid, bind->uid_base, cell, fail) < 0) return -1;
  if (bind->cgroup[0] && cgroup_limit(bind->cgroup, &bind->limits, fail) < 0) return -1;
  /* The network comes first: its host side needs the host's namespaces and root's credentials. */
  const struct network *network = bind->has_network ? &bind->network : NULL;
  if (net_attach(network, cell->net_ns, bind->uid_base, false, undo, fail) < 0) return -1;
  if (set_hostname(cell, bind->hostname, fail) < 0) return -1;
  if (cred_as(bind->uid_base, fail) < 0) return -1;
  if (bind_mount_trees(bind, cell->user_ns, cell->carried, cell->carrieds, roots, fail) < 0) return -1;
  *etc = etc_write(roots[0], bind);
  if (attach_roots(bind, cell, roots, fail) < 0) return -1;
  return size_shared_memory(bind, fail);
}

int bind_cell(const struct bind *bind, bool *etc, struct fail *fail) {
  struct cell cell;
  int roots[MAX_TREES], undo = -1;
  int result = bind_steps(bind, &cell, roots, &undo, etc, fail);
  if (result < 0) net_detach(&bind->network, &undo);
  return result;
}
