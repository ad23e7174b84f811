#include "mount/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

int idmap_clone(int dir_fd, int user_ns, struct fail *fail) {
  int mount_fd = open_tree(dir_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  if (mount_fd < 0) return fail_errno(fail, "idmap", "open_tree");
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NODEV, .userns_fd = (uint64_t)user_ns};
  if (mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0) {
    fail_errno(fail, "idmap", "mount_setattr: this filesystem or kernel may not support idmapped mounts");
    close(mount_fd);
    return -1;
  }
  return mount_fd;
}
