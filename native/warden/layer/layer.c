#include "layer/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layer/btrfs.h"
#include "layer/copy.h"
#include "layer/remove.h"
#include "paths.h"

const char *layer_method_name(enum clone_method method) {
  return method == CLONE_BY_BTRFS ? "btrfs" : method == CLONE_BY_REFLINK ? "reflink" : "copy";
}

/* Whether the filesystem supports reflinks. */
static bool can_reflink(void) {
  char from[48], to[48];
  path_temp_name(from);
  path_temp_name(to);
  AUTO_CLOSE int source = openat(warden.layers_fd, from, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  AUTO_CLOSE int target = openat(warden.layers_fd, to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool can = source >= 0 && target >= 0 && write(source, "islet", 5) == 5 && ioctl(target, FICLONE, source) == 0;
  unlinkat(warden.layers_fd, from, 0);
  unlinkat(warden.layers_fd, to, 0);
  return can;
}

static int choose_method(const char *wanted, struct fail *fail) {
  bool any = strcmp(wanted, "auto") == 0;
  if ((any || strcmp(wanted, "btrfs") == 0) && btrfs_is(warden.layers_fd)) {
    warden.method = CLONE_BY_BTRFS;
    warden.quota = btrfs_enable_quota(warden.layers_fd) == 0;
    if (warden.quota) btrfs_sweep_quota(warden.layers_fd);
  } else if ((any || strcmp(wanted, "reflink") == 0) && can_reflink()) {
    warden.method = CLONE_BY_REFLINK;
  } else if (any || strcmp(wanted, "copy") == 0) {
    warden.method = CLONE_BY_COPY;
  } else {
    return fail_kind(fail, KIND_UNSUPPORTED, "boot", "layers cannot be cloned by %s here", wanted);
  }
  return 0;
}

static void remove_temps(void) {
  AUTO_CLOSE_DIR DIR *list = io_take_dir(path_open_dir(warden.layers_fd, "."));
  struct dirent *entry;
  while ((entry = io_next_entry(list)) != NULL) {
    if (path_is_temp(entry->d_name)) layer_discard(entry->d_name);
  }
}

int layer_open(int pool_fd, const char *method, struct fail *fail) {
  if (mkdirat(pool_fd, "layers", 0700) < 0 && errno != EEXIST) return fail_errno(fail, "boot", "mkdir layers");
  warden.layers_fd = path_open_dir(pool_fd, "layers");
  if (warden.layers_fd < 0) return fail_errno(fail, "boot", "open layers");
  remove_temps();
  return choose_method(method, fail);
}

int layer_make_temp(char temp[48], struct fail *fail) {
  path_temp_name(temp);
  int made = warden.method == CLONE_BY_BTRFS ? btrfs_create(warden.layers_fd, temp) : mkdirat(warden.layers_fd, temp, 0755);
  if (made < 0) return fail_errno(fail, "create", "%s", temp);
  return path_layer(temp, fail);
}

int layer_publish(const char *temp, const char *name, struct fail *fail) {
  if (renameat2(warden.layers_fd, temp, warden.layers_fd, name, RENAME_NOREPLACE) == 0) return 0;
  return fail_errno(fail, "publish", "layer %s", name);
}

void layer_discard(const char *temp) {
  if ((warden.method == CLONE_BY_BTRFS || btrfs_is(warden.layers_fd)) && btrfs_destroy(warden.layers_fd, temp) == 0) return;
  remove_tree(warden.layers_fd, temp);
}

static int exists(const char *name, struct fail *fail) {
  if (faccessat(warden.layers_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0) return 0;
  return fail_kind(fail, KIND_EXISTS, "create", "layer %s", name);
}

static int set_limit(int fd, uint64_t bytes, struct fail *fail) {
  if (!warden.quota) return 0; /* HELLO said that limits are not enforced here */
  return btrfs_limit(fd, bytes) < 0 ? fail_errno(fail, "limit", "qgroup") : 0;
}

int layer_create(const char *name, uint64_t limit_bytes, struct fail *fail) {
  char temp[48];
  if (exists(name, fail) < 0) return -1;
  AUTO_CLOSE int fd = layer_make_temp(temp, fail);
  if (fd < 0) return -1;
  if ((limit_bytes && set_limit(fd, limit_bytes, fail) < 0) || layer_publish(temp, name, fail) < 0) {
    layer_discard(temp);
    return -1;
  }
  return 0;
}

/* The clone must not inherit overlay's files in <tree>.work: they belong to the mount of the source. */
static int empty_work_dirs(int layer, struct fail *fail) {
  AUTO_CLOSE_DIR DIR *list = io_take_dir(path_open_dir(layer, "."));
  if (list == NULL) return fail_errno(fail, "clone", "opendir");
  struct dirent *entry;
  while ((entry = io_next_entry(list)) != NULL) {
    size_t length = strlen(entry->d_name);
    if (length < 6 || strcmp(entry->d_name + length - 5, ".work") != 0) continue;
    AUTO_CLOSE int work = path_open_dir(layer, entry->d_name);
    if (work < 0 || remove_contents(work) < 0) return fail_errno(fail, "clone", "empty %s", entry->d_name);
  }
  return 0;
}

static int clone_copy(int source, char temp[48], struct fail *fail) {
  struct copier copier = {.reflink = warden.method != CLONE_BY_COPY};
  int fd = layer_make_temp(temp, fail);
  if (fd >= 0 && copy_tree(&copier, source, fd, fail) < 0) close_fd(&fd);
  inodes_free(&copier.links);
  return fd;
}

/* Clones under a temporary name; *method is how. A plain directory on btrfs is copied. */
static int clone_temp(int source, char temp[48], enum clone_method *method, struct fail *fail) {
  bool snapshot = warden.method == CLONE_BY_BTRFS && btrfs_is_subvolume(source);
  *method = snapshot ? CLONE_BY_BTRFS : warden.method == CLONE_BY_COPY ? CLONE_BY_COPY : CLONE_BY_REFLINK;
  if (!snapshot) return clone_copy(source, temp, fail);
  path_temp_name(temp);
  if (btrfs_snapshot(warden.layers_fd, temp, source, false) < 0) return fail_errno(fail, "clone", "snapshot");
  return path_layer(temp, fail);
}

/* Complete, read-only and durable in one step: the kernel commits a snapshot, with its name, before the ioctl returns. It
 * contains overlay's files in <tree>.work, which do no harm in a layer that is never mounted writable. */
static int save_snapshot(int source, const char *name, struct fail *fail) {
  return btrfs_snapshot(warden.layers_fd, name, source, true) < 0 ? fail_errno(fail, "clone", "snapshot") : 0;
}

static int answer_clone(struct wire_out *ok, enum clone_method method, uint64_t began) {
  wire_put_str(ok, TAG_OK_method, layer_method_name(method));
  wire_put_u64(ok, TAG_OK_duration_us, now_us() - began);
  return 0;
}

int layer_clone(const struct request *request, struct wire_out *ok, struct fail *fail) {
  char temp[48] = "";
  enum clone_method method;
  uint64_t began = now_us();
  if (exists(request->to, fail) < 0) return -1;
  AUTO_CLOSE int source = path_layer(request->name, fail);
  if (source < 0) return -1;
  if (request->flag && request->limit_bytes == 0 && warden.method == CLONE_BY_BTRFS && btrfs_is_subvolume(source)) {
    return save_snapshot(source, request->to, fail) < 0 ? -1 : answer_clone(ok, CLONE_BY_BTRFS, began);
  }
  AUTO_CLOSE int fd = clone_temp(source, temp, &method, fail);
  bool good = fd >= 0 && empty_work_dirs(fd, fail) == 0 &&
              (request->limit_bytes == 0 || set_limit(fd, request->limit_bytes, fail) == 0);
  if (good && request->flag && method == CLONE_BY_BTRFS && btrfs_set_read_only(fd, true) < 0) {
    good = fail_errno(fail, "clone", "read-only") == 0;
  }
  if (!good || layer_publish(temp, request->to, fail) < 0) {
    if (temp[0]) layer_discard(temp);
    return -1;
  }
  return answer_clone(ok, method, began);
}

int layer_delete(const char *name, struct fail *fail) {
  char temp[48];
  const char *doomed = temp;
  path_temp_name(temp);
  if (renameat2(warden.layers_fd, name, warden.layers_fd, temp, RENAME_NOREPLACE) < 0) {
    if (errno == ENOENT) return 0;
    /* A full filesystem has no room for a new name, but can always remove one. */
    if (errno != ENOSPC) return fail_errno(fail, "delete", "layer %s", name);
    doomed = name;
  }
  layer_discard(doomed);
  if (warden.method == CLONE_BY_BTRFS) btrfs_hurry_cleaner(warden.layers_fd);
  if (faccessat(warden.layers_fd, doomed, F_OK, AT_SYMLINK_NOFOLLOW) < 0) return 0;
  return fail_kind(fail, KIND_BUSY, "delete", "part of layer %s could not be removed; the next start removes it", name);
}

int layer_limit(const char *name, uint64_t limit_bytes, struct fail *fail) {
  AUTO_CLOSE int fd = path_layer(name, fail);
  return fd < 0 ? -1 : set_limit(fd, limit_bytes, fail);
}

int layer_sync(struct fail *fail) {
  int done = warden.method == CLONE_BY_BTRFS ? btrfs_sync(warden.layers_fd) : syncfs(warden.layers_fd);
  return done < 0 ? fail_errno(fail, "sync", "layers") : 0;
}

int layer_usage(const char *name, struct wire_out *ok, struct fail *fail) {
  uint64_t bytes;
  AUTO_CLOSE int fd = path_layer(name, fail);
  if (fd < 0 || copy_usage(fd, &bytes, fail) < 0) return -1;
  wire_put_u64(ok, TAG_OK_bytes, bytes);
  return 0;
}

int layer_list(struct wire_out *ok, struct fail *fail) {
  AUTO_CLOSE_DIR DIR *list = io_take_dir(path_open_dir(warden.layers_fd, "."));
  if (list == NULL) return fail_errno(fail, "list", "layers");
  struct dirent *entry;
  while ((entry = io_next_entry(list)) != NULL) {
    if (entry->d_name[0] != '.' && strlen(entry->d_name) <= MAX_NAME) wire_put_str(ok, TAG_OK_name, entry->d_name);
  }
  return ok->full ? fail_kind(fail, KIND_SYSTEM, "list", "too many layers") : 0;
}
