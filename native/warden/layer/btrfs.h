/* btrfs: subvolumes and quota groups by ioctl. All return 0 (or an fd) or -1 with errno. */
#pragma once

#include "warden.h"

bool btrfs_is(int fd);
int btrfs_create(int parent, const char *name);
int btrfs_snapshot(int parent, const char *name, int source, bool read_only);
int btrfs_set_read_only(int fd, bool read_only);
int btrfs_destroy(int parent, const char *name);
bool btrfs_is_subvolume(int fd);
/* Enables simple quotas, which need Linux 6.7. */
int btrfs_enable_quota(int fd);
/* Removes the empty quota groups of deleted subvolumes. The group of a live subvolume has at least its root block. */
void btrfs_sweep_quota(int fd);
/* Like syncfs; also wakes the kernel thread that frees destroyed subvolumes. */
int btrfs_sync(int fd);
/* The kernel frees destroyed subvolumes within half a minute; this makes it start now if space is scarce. */
void btrfs_hurry_cleaner(int fd);
/* Sets the limit of the subvolume of fd; 0 removes it. */
int btrfs_limit(int fd, uint64_t bytes);
