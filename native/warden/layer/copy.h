/* copy: trees of files with everything that is theirs: owners, modes, times, xattrs, hard links, holes, devices. */
#ifndef ISLET_WARDEN_COPY_H
#define ISLET_WARDEN_COPY_H

#include "layer/handle.h"

struct copier {
  bool reflink;        /* share the data where the filesystem can */
  bool skip_overlay;   /* leave trusted.overlay.* behind */
  struct inodes links; /* copies of files with several names */
};

/* The contents and attributes of one directory into another, all the way down. */
int copy_tree(struct copier *copier, int from, int to, struct fail *fail);
/* One entry that is not a directory. */
int copy_entry(struct copier *copier, int from, int to, const char *name, const struct stat *stat, struct fail *fail);
/* Owner, mode, xattrs and (last, since filling a directory touches them) times. */
int copy_attributes(const struct copier *copier, int from, int to, const struct stat *stat, struct fail *fail);
/* Bytes on disk of all below dir, hard links once. */
int copy_usage(int dir, uint64_t *bytes, struct fail *fail);

#endif
