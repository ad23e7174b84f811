/* btrfs: subvolumes and quota groups by ioctl. All return 0 (or an fd) or -1 with errno. */
#ifndef ISLET_WARDEN_BTRFS_H
#define ISLET_WARDEN_BTRFS_H

#include "warden.h"

bool btrfs_is(int fd);
int btrfs_create(int parent, const char *name);
int btrfs_snapshot(int parent, const char *name, int source, bool read_only);
int btrfs_set_read_only(int fd, bool read_only);
int btrfs_destroy(int parent, const char *name);
bool btrfs_is_subvolume(int fd);
/* Turns quotas on when they are off: simple ones where the kernel has them (6.7), else none. */
int btrfs_enable_quota(int fd);
/* Removes groups of subvolumes that are gone and whose last shared block is too; a live one has at least its own root block. */
void btrfs_sweep_quota(int fd);
/* Like syncfs, and unlike it wakes the thread of the kernel that gives back what was destroyed. */
int btrfs_sync(int fd);
/* What was destroyed is given back by the kernel within half a minute; at once where room is scarce. */
void btrfs_hurry_cleaner(int fd);
/* The limit of the subvolume fd is in; 0 takes it off. */
int btrfs_limit(int fd, uint64_t bytes);

#endif
