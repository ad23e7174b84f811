#include "mount/usr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mount/cred.h"
#include "mount/overlay.h"

/* A host id; all ids in the clone are in a sandbox's range. */
enum { NOBODY = 65534 };

#define EMPTY "usr-empty"

/* CAP_SYS_ADMIN is needed to mount and to read trusted.overlay.*; nothing else is kept. */
static int cred_as_nobody(struct fail *fail) {
  return cred_with_only(NOBODY, CAP_SYS_ADMIN, fail);
}

static int set(int fs, const char *key, const char *value) {
  return fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0);
}

/* From the detached clone (since 6.15). An overlay without an upper needs two lowers, so the second one is empty. */
static int detached(int clone, int empty, struct fail *fail) {
  AUTO_CLOSE int fs = fsopen("overlay", FSOPEN_CLOEXEC);
  if (fs < 0 || set(fs, "source", "islet") < 0 || overlay_set_dir(fs, "lowerdir+", clone) < 0 || overlay_set_dir(fs, "lowerdir+", empty) < 0 ||
      set(fs, "redirect_dir", "nofollow") < 0 || set(fs, "metacopy", "off") < 0 || set(fs, "xino", "off") < 0 ||
      fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
    return fail_errno(fail, "usr", "overlay");
  }
  int mount_fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
  return mount_fd < 0 ? fail_errno(fail, "usr", "fsmount") : mount_fd;
}

static int as_nobody(int clone, int empty, uint32_t id, struct fail *fail) {
  struct fail ignored;
  int mount_fd = cred_as_nobody(fail) < 0 ? -1 : detached(clone, empty, fail);
  if (cred_as(id, mount_fd < 0 ? &ignored : fail) < 0) close_fd(&mount_fd);
  return mount_fd;
}

/* For older kernels: in a place that everybody may enter, because `nobody` mounts there. */
static int attached(int clone, uint32_t id, struct fail *fail) {
  static const char options[] = "lowerdir=usr:empty,redirect_dir=nofollow,metacopy=off,xino=off";
  if (mkdir("usr", 0755) < 0 || mkdir("empty", 0755) < 0 || mkdir("m", 0755) < 0) {
    return fail_errno(fail, "usr", "scratch");
  }
  if (move_mount(clone, "", AT_FDCWD, "usr", MOVE_MOUNT_F_EMPTY_PATH) < 0) return fail_errno(fail, "usr", "attach");
  struct fail ignored;
  int result = cred_as_nobody(fail);
  if (result == 0 && mount("islet", "m", "overlay", MS_NODEV, options) < 0) result = fail_errno(fail, "usr", "overlay");
  if (cred_as(id, result < 0 ? &ignored : fail) < 0 || result < 0) return -1;
  int mount_fd = open_tree(AT_FDCWD, "m", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return mount_fd < 0 ? fail_errno(fail, "usr", "open_tree") : mount_fd;
}

static int portable(int clone, uint32_t id, struct fail *fail) {
  if (overlay_enter_place(0755, fail) < 0) return -1;
  return overlay_leave_place(attached(clone, id, fail), fail);
}

int usr_of_anybody(int clone, struct fail *fail) {
  uint32_t id = (uint32_t)setfsuid((uid_t)-1);
  if (warden.portable) return portable(clone, id, fail);
  if (mkdirat(warden.scratch_fd, EMPTY, 0755) < 0 && errno != EEXIST) return fail_errno(fail, "usr", "mkdir");
  /* Detached, too: an overlay cannot mix detached and attached parts. */
  AUTO_CLOSE int scratch = open_tree(warden.scratch_fd, EMPTY, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return scratch < 0 ? fail_errno(fail, "usr", "empty") : as_nobody(clone, scratch, id, fail);
}
