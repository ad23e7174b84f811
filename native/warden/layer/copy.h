/* copy: copies trees with owners, modes, times, xattrs, hard links, holes and devices. */
#pragma once

#include "layer/handle.h"

struct copier {
  bool reflink;        /* share the data where the filesystem can */
  bool skip_overlay;   /* leave trusted.overlay.* behind */
  struct inodes links; /* copies of files with several names */
};

/* Copies the contents and attributes of a directory into another, recursively. */
int copy_tree(struct copier *copier, int from, int to, struct fail *fail);
/* Copies one entry that is not a directory. */
int copy_entry(struct copier *copier, int from, int to, const char *name, const struct stat *stat, struct fail *fail);
/* Copies owner, xattrs, mode and, last, times. Call it after a directory is filled, which changes its times. */
int copy_attributes(const struct copier *copier, int from, int to, const struct stat *stat, struct fail *fail);
/* The bytes on disk of everything below dir; hard links count once. */
int copy_usage(int dir, uint64_t *bytes, struct fail *fail);
