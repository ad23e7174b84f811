#include "layer/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

union raw {
  struct file_handle handle;
  unsigned char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};

int handle_of(int fd, struct handle *handle) {
  union raw raw;
  int mount_id;
  raw.handle.handle_bytes = MAX_HANDLE_SZ;
  if (name_to_handle_at(fd, "", &raw.handle, &mount_id, AT_EMPTY_PATH) < 0) return -1;
  handle->bytes = raw.handle.handle_bytes;
  handle->type = raw.handle.handle_type;
  memcpy(handle->data, raw.bytes + sizeof(struct file_handle), handle->bytes);
  return 0;
}

int handle_open(int on, const struct handle *handle, int flags) {
  union raw raw;
  raw.handle.handle_bytes = handle->bytes;
  raw.handle.handle_type = handle->type;
  memcpy(raw.bytes + sizeof(struct file_handle), handle->data, handle->bytes);
  return open_by_handle_at(on, &raw.handle, flags | O_CLOEXEC);
}

int stack_push(struct stack *stack, const void *item) {
  if (stack->count == stack->capacity) {
    size_t capacity = stack->capacity ? stack->capacity * 2 : 64;
    unsigned char *items = reallocarray(stack->items, capacity, stack->size);
    if (items == NULL) return -1;
    stack->items = items;
    stack->capacity = capacity;
  }
  memcpy(stack->items + stack->count++ * stack->size, item, stack->size);
  return 0;
}

bool stack_pop(struct stack *stack, void *item) {
  if (stack->count == 0) return false;
  memcpy(item, stack->items + --stack->count * stack->size, stack->size);
  return true;
}

void stack_free(struct stack *stack) {
  free(stack->items);
  *stack = (struct stack){.size = stack->size};
}

static struct inode_entry *slot(struct inode_entry *entries, size_t capacity, uint64_t dev, uint64_t ino) {
  size_t at = (size_t)((ino * 0x9e3779b97f4a7c15u) ^ dev) & (capacity - 1);
  while (entries[at].ino != 0 && (entries[at].ino != ino || entries[at].dev != dev)) at = (at + 1) & (capacity - 1);
  return &entries[at];
}

const struct inode_entry *inodes_find(const struct inodes *inodes, const struct stat *stat) {
  if (inodes->capacity == 0) return NULL;
  const struct inode_entry *entry = slot(inodes->entries, inodes->capacity, stat->st_dev, stat->st_ino);
  return entry->ino == 0 ? NULL : entry;
}

static int grow(struct inodes *inodes) {
  size_t capacity = inodes->capacity ? inodes->capacity * 2 : 256;
  struct inode_entry *entries = calloc(capacity, sizeof *entries);
  if (entries == NULL) return -1;
  for (size_t i = 0; i < inodes->capacity; i++) {
    const struct inode_entry *old = &inodes->entries[i];
    if (old->ino != 0) *slot(entries, capacity, old->dev, old->ino) = *old;
  }
  free(inodes->entries);
  inodes->entries = entries;
  inodes->capacity = capacity;
  return 0;
}

int inodes_add(struct inodes *inodes, const struct stat *stat, const struct handle *handle) {
  if (inodes->count * 2 >= inodes->capacity && grow(inodes) < 0) return -1;
  struct inode_entry *entry = slot(inodes->entries, inodes->capacity, stat->st_dev, stat->st_ino);
  if (entry->ino == 0) inodes->count++;
  entry->dev = stat->st_dev;
  entry->ino = stat->st_ino;
  if (handle != NULL) entry->handle = *handle;
  return 0;
}

void inodes_free(struct inodes *inodes) {
  free(inodes->entries);
  *inodes = (struct inodes){0};
}
