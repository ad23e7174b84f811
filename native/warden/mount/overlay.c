#include "mount/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "mount/idmap.h"
#include "mount/release.h"
#include "mount/usr.h"
#include "paths.h"

/*
 * redirect_dir=on: rename(2) of a directory from a lower layer works (npm, git and pip do that; without it they get EXDEV as
 * soon as a sandbox starts from a snapshot). The redirect is an absolute path inside the stack, so it stays valid when this
 * upper becomes a lower over the same layers; LAYER_FLATTEN resolves it. xino, index and metacopy are off because layers move
 * between mounts and machines: they must not contain inode numbers or incomplete files.
 */
static const char *const OPTIONS[][2] = {
    {"redirect_dir", "on"}, {"index", "off"}, {"xino", "off"}, {"metacopy", "off"}};
enum { OPTION_COUNT = sizeof OPTIONS / sizeof *OPTIONS, PLACE_BYTES = sizeof warden.scratch + 16 };

/* Detached mounts. Closing one costs an RCU grace period of the kernel, so they stay open until this process exits, which is
 * after its answer. */
struct parts {
  int lower[MAX_LOWERS];
  unsigned lowers;
  int upper; /* the layer, with <tree> and <tree>.work */
  char work[MAX_NAME + 6];
};

/* -2: the layer lacks this tree, so it is left out. */
static int open_lower(const struct lower *lower, struct fail *fail) {
  if (lower->kind == LOWER_HOST_USR) {
    int fd = fcntl(warden.usr_fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? fail_errno(fail, "lower", "the host's /usr") : fd;
  }
  bool layer = lower->kind == LOWER_LAYER;
  AUTO_CLOSE int parent = path_open_dir(layer ? warden.layers_fd : warden.images_fd, lower->name);
  if (parent < 0) return fail_errno(fail, "lower", "%s %s", layer ? "layer" : "image", lower->name);
  int fd = path_open_dir(parent, lower->tree);
  if (fd < 0 && layer && errno == ENOENT) return -2;
  return fd < 0 ? fail_errno(fail, "lower", "%s of %s", lower->tree, lower->name) : fd;
}

/* Whether the layer was mounted before: overlay leaves a directory `work`. The kernel does not allow two mounts of a layer at once. */
static bool was_mounted(const struct parts *parts) {
  char work[sizeof parts->work + 5];
  snprintf(work, sizeof work, "%s/work", parts->work);
  return faccessat(parts->upper, work, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_parts(const struct tree *tree, const char *layer, int user_ns, struct parts *parts, struct fail *fail) {
  for (unsigned i = 0; i < tree->lowers; i++) {
    AUTO_CLOSE int dir = open_lower(&tree->lower[i], fail);
    if (dir == -2) continue;
    int mount_fd = dir < 0 ? -1 : idmap_clone(dir, user_ns, fail);
    if (mount_fd >= 0 && tree->lower[i].kind == LOWER_HOST_USR) mount_fd = usr_of_anybody(mount_fd, fail);
    if (mount_fd < 0) return -1;
    parts->lower[parts->lowers++] = mount_fd;
  }
  if (parts->lowers == 0) return fail_kind(fail, KIND_NOT_FOUND, "lower", "no lower has a tree %s", tree->tree);
  AUTO_CLOSE int dir = path_layer(layer, fail);
  if (dir < 0) return -1;
  path_work_name(parts->work, tree->tree);
  parts->upper = idmap_clone(dir, user_ns, fail);
  if (parts->upper < 0) return -1;
  /* Through the idmapped mount, which stores our fsuid as 0 on disk. */
  if (mkdirat(parts->upper, tree->tree, 0755) < 0 && errno != EEXIST) return fail_errno(fail, "upper", "mkdir %s", tree->tree);
  int made = mkdirat(parts->upper, parts->work, 0700);
  if (made < 0 && errno != EEXIST) return fail_errno(fail, "upper", "mkdir %s", parts->work);
  if (made < 0 && was_mounted(parts)) release_now();
  return 0;
}

int overlay_set_dir(int fs, const char *key, int dir) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
  return fsconfig(fs, FSCONFIG_SET_STRING, key, path, 0);
}

/* From detached parts (since 6.15): nothing is attached, so a crash leaves nothing behind. */
static int mount_detached(const struct tree *tree, struct parts *parts, struct fail *fail) {
  AUTO_CLOSE int upper = path_open(parts->upper, tree->tree, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  AUTO_CLOSE int work = path_open(parts->upper, parts->work, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (upper < 0 || work < 0) return fail_errno(fail, "upper", "%s", tree->tree);
  AUTO_CLOSE int fs = fsopen("overlay", FSOPEN_CLOEXEC);
  if (fs < 0) return fail_errno(fail, "overlay", "fsopen");
  if (fsconfig(fs, FSCONFIG_SET_STRING, "source", "islet", 0) < 0) return fail_errno(fail, "overlay", "source");
  for (unsigned i = 0; i < parts->lowers; i++) {
    if (overlay_set_dir(fs, "lowerdir+", parts->lower[i]) < 0) return fail_errno(fail, "overlay", "lowerdir+ %u", i);
  }
  if (overlay_set_dir(fs, "upperdir", upper) < 0) return fail_errno(fail, "overlay", "upperdir");
  if (overlay_set_dir(fs, "workdir", work) < 0) return fail_errno(fail, "overlay", "workdir");
  for (unsigned i = 0; i < OPTION_COUNT; i++) {
    if (fsconfig(fs, FSCONFIG_SET_STRING, OPTIONS[i][0], OPTIONS[i][1], 0) < 0) {
      return fail_errno(fail, "overlay", "%s", OPTIONS[i][0]);
    }
  }
  if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) return fail_errno(fail, "overlay", "create");
  int mount_fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
  return mount_fd < 0 ? fail_errno(fail, "overlay", "fsmount") : mount_fd;
}

static int attach(int mount_fd, const char *at, struct fail *fail) {
  if (mkdir(at, 0700) < 0) return fail_errno(fail, "scratch", "mkdir %s", at);
  if (move_mount(mount_fd, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) < 0) return fail_errno(fail, "scratch", "attach %s", at);
  return 0;
}

/* In the current directory (overlay_enter_place): lowers at 0, 1 …, the layer at u, the overlay at m. */
static int mount_attached(const struct tree *tree, struct parts *parts, struct fail *fail) {
  char options[4096] = "lowerdir=";
  size_t used = strlen(options);
  for (unsigned i = 0; i < parts->lowers; i++) {
    char at[12];
    snprintf(at, sizeof at, "%u", i);
    if (attach(parts->lower[i], at, fail) < 0) return -1;
    used += (size_t)snprintf(options + used, sizeof options - used, "%s%s", i ? ":" : "", at);
  }
  if (attach(parts->upper, "u", fail) < 0) return -1;
  used += (size_t)snprintf(options + used, sizeof options - used, ",upperdir=u/%s,workdir=u/%s", tree->tree, parts->work);
  for (unsigned i = 0; i < OPTION_COUNT; i++) {
    used += (size_t)snprintf(options + used, sizeof options - used, ",%s=%s", OPTIONS[i][0], OPTIONS[i][1]);
  }
  if (mkdir("m", 0700) < 0) return fail_errno(fail, "scratch", "mkdir m");
  if (mount("islet", "m", "overlay", MS_NODEV, options) < 0) return fail_errno(fail, "overlay", "mount");
  int mount_fd = open_tree(AT_FDCWD, "m", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return mount_fd < 0 ? fail_errno(fail, "overlay", "open_tree") : mount_fd;
}

static void place_path(char place[PLACE_BYTES]) {
  snprintf(place, PLACE_BYTES, "%s/%d", warden.scratch, getpid());
}

int overlay_enter_place(mode_t mode, struct fail *fail) {
  char place[PLACE_BYTES], options[32];
  place_path(place);
  snprintf(options, sizeof options, "mode=%o,size=1m", mode);
  mkdir(place, mode);
  if (mount("tmpfs", place, "tmpfs", MS_NODEV | MS_NOSUID, options) < 0) return fail_errno(fail, "scratch", "tmpfs");
  if (chdir(place) == 0) return 0;
  fail_errno(fail, "scratch", "chdir");
  umount2(place, MNT_DETACH);
  return -1;
}

int overlay_leave_place(int mount_fd, struct fail *fail) {
  char place[PLACE_BYTES];
  place_path(place);
  if (chdir("/") < 0 || umount2(place, MNT_DETACH) < 0) {
    close_fd(&mount_fd);
    return fail_errno(fail, "scratch", "umount");
  }
  rmdir(place);
  return mount_fd;
}

static int mount_portable(const struct tree *tree, struct parts *parts, struct fail *fail) {
  if (overlay_enter_place(0700, fail) < 0) return -1;
  return overlay_leave_place(mount_attached(tree, parts, fail), fail);
}

static bool is_read_only(int mount_fd) {
  struct statvfs info;
  return fstatvfs(mount_fd, &info) < 0 || info.f_flag & ST_RDONLY;
}

int overlay_mount(const struct tree *tree, const char *layer, int user_ns, struct fail *fail) {
  struct parts parts = {.upper = -1};
  int mount_fd = open_parts(tree, layer, user_ns, &parts, fail);
  if (mount_fd == 0) {
    mount_fd = warden.portable ? mount_portable(tree, &parts, fail) : mount_detached(tree, &parts, fail);
  }
  if (mount_fd < 0 || !is_read_only(mount_fd)) return mount_fd;
  close(mount_fd);
  /* The kernel mounts read-only when it cannot make a directory in the work directory, which open_parts has just made. */
  uint32_t kind = is_read_only(parts.upper) ? KIND_SYSTEM : KIND_NO_SPACE;
  return fail_kind(fail, kind, "overlay", "the overlay of %s came out read-only", tree->tree);
}

/* Tries it with two read-only lowers. */
void overlay_probe(void) {
  AUTO_CLOSE int lower = open_tree(warden.scratch_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  AUTO_CLOSE int fs = fsopen("overlay", FSOPEN_CLOEXEC);
  if (mkdirat(warden.scratch_fd, "a", 0700) < 0 || mkdirat(warden.scratch_fd, "b", 0700) < 0) return;
  AUTO_CLOSE int a = openat(lower, "a", O_PATH | O_CLOEXEC), b = openat(lower, "b", O_PATH | O_CLOEXEC);
  bool can = overlay_set_dir(fs, "lowerdir+", a) == 0 && overlay_set_dir(fs, "lowerdir+", b) == 0 &&
             fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0;
  if (!can) warden.portable = true;
  unlinkat(warden.scratch_fd, "a", AT_REMOVEDIR);
  unlinkat(warden.scratch_fd, "b", AT_REMOVEDIR);
}
