#include "layer/btrfs.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA
#define BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA 4 /* Linux 6.7 */
#endif

bool btrfs_is(int fd) {
  struct statfs fs;
  return fstatfs(fd, &fs) == 0 && fs.f_type == BTRFS_SUPER_MAGIC;
}

bool btrfs_is_subvolume(int fd) {
  struct stat stat;
  return btrfs_is(fd) && fstat(fd, &stat) == 0 && stat.st_ino == BTRFS_FIRST_FREE_OBJECTID;
}

static struct btrfs_ioctl_vol_args_v2 args_for(const char *name) {
  struct btrfs_ioctl_vol_args_v2 args;
  memset(&args, 0, sizeof args);
  snprintf(args.name, sizeof args.name, "%s", name);
  return args;
}

int btrfs_create(int parent, const char *name) {
  struct btrfs_ioctl_vol_args_v2 args = args_for(name);
  return ioctl(parent, BTRFS_IOC_SUBVOL_CREATE_V2, &args);
}

int btrfs_snapshot(int parent, const char *name, int source, bool read_only) {
  struct btrfs_ioctl_vol_args_v2 args = args_for(name);
  args.fd = source;
  if (read_only) args.flags = BTRFS_SUBVOL_RDONLY;
  return ioctl(parent, BTRFS_IOC_SNAP_CREATE_V2, &args);
}

int btrfs_set_read_only(int fd, bool read_only) {
  uint64_t flags;
  if (ioctl(fd, BTRFS_IOC_SUBVOL_GETFLAGS, &flags) < 0) return -1;
  flags = read_only ? flags | BTRFS_SUBVOL_RDONLY : flags & ~(uint64_t)BTRFS_SUBVOL_RDONLY;
  return ioctl(fd, BTRFS_IOC_SUBVOL_SETFLAGS, &flags);
}

int btrfs_destroy(int parent, const char *name) {
  struct btrfs_ioctl_vol_args_v2 args = args_for(name);
  return ioctl(parent, BTRFS_IOC_SNAP_DESTROY_V2, &args);
}

int btrfs_enable_quota(int fd) {
  struct btrfs_ioctl_quota_ctl_args args = {.cmd = BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA};
  if (ioctl(fd, BTRFS_IOC_QUOTA_CTL, &args) == 0 || errno == EEXIST) return 0;
  return -1;
}

int btrfs_limit(int fd, uint64_t bytes) {
  struct btrfs_ioctl_qgroup_limit_args args;
  memset(&args, 0, sizeof args);
  args.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
  args.lim.max_rfer = bytes ? bytes : UINT64_MAX; /* no limit */
  return ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &args);
}

int btrfs_sync(int fd) { return ioctl(fd, BTRFS_IOC_SYNC); }

void btrfs_hurry_cleaner(int fd) {
  struct statfs fs;
  if (fstatfs(fd, &fs) == 0 && fs.f_bavail < fs.f_blocks / 8) btrfs_sync(fd);
}

/* Sweeps the next page of quota groups from *from on; false if there was none. */
static bool sweep_page(int fd, uint64_t *from) {
  struct btrfs_ioctl_search_args args;
  memset(&args, 0, sizeof args);
  args.key = (struct btrfs_ioctl_search_key){.tree_id = BTRFS_QUOTA_TREE_OBJECTID, .min_type = BTRFS_QGROUP_INFO_KEY,
      .max_type = BTRFS_QGROUP_INFO_KEY, .min_offset = *from, .max_offset = UINT64_MAX, .max_transid = UINT64_MAX, .nr_items = 64};
  if (ioctl(fd, BTRFS_IOC_TREE_SEARCH, &args) < 0 || args.key.nr_items == 0) return false;
  size_t at = 0;
  for (uint32_t i = 0; i < args.key.nr_items && at + sizeof(struct btrfs_ioctl_search_header) <= sizeof args.buf; i++) {
    struct btrfs_ioctl_search_header header;
    struct btrfs_qgroup_info_item info;
    memcpy(&header, args.buf + at, sizeof header);
    at += sizeof header;
    if (header.len < sizeof info || at + header.len > sizeof args.buf) return false;
    memcpy(&info, args.buf + at, sizeof info);
    at += header.len;
    *from = header.offset + 1;
    struct btrfs_ioctl_qgroup_create_args remove = {.create = 0, .qgroupid = header.offset};
    if (info.rfer == 0 && header.offset >= BTRFS_FIRST_FREE_OBJECTID) ioctl(fd, BTRFS_IOC_QGROUP_CREATE, &remove);
  }
  return true;
}

void btrfs_sweep_quota(int fd) {
  uint64_t from = 0;
  if (btrfs_sync(fd) < 0) return; /* a subvolume counts as empty until its first commit */
  while (sweep_page(fd, &from)) continue;
}
