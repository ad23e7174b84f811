/*
 * handle: remembers files without an open fd or a path, so that walking a tree of any depth needs few fds and no recursion;
 * and a table of inodes, for hard links.
 */
#pragma once

#include <sys/stat.h>

#include "warden.h"

struct handle {
  uint32_t bytes;
  int32_t type;
  unsigned char data[128]; /* MAX_HANDLE_SZ */
};

/* 0 or -1 with errno. */
int handle_of(int fd, struct handle *handle);
/* Opens it again; `on` is any fd on the same filesystem. */
int handle_open(int on, const struct handle *handle, int flags);

/* A stack of items of `size` bytes. */
struct stack {
  unsigned char *items;
  size_t size, count, capacity;
};
int stack_push(struct stack *stack, const void *item);
bool stack_pop(struct stack *stack, void *item);
void stack_free(struct stack *stack);

/* Inodes by (dev, ino), with the handle given to inodes_add. */
struct inode_entry {
  uint64_t dev, ino;
  struct handle handle;
};
struct inodes {
  struct inode_entry *entries; /* open addressing; ino 0 is free */
  size_t count, capacity;
};
const struct inode_entry *inodes_find(const struct inodes *inodes, const struct stat *stat);
int inodes_add(struct inodes *inodes, const struct stat *stat, const struct handle *handle);
void inodes_free(struct inodes *inodes);
