/*
 * watch_queue: the events of one WATCH that wait to be sent.
 *
 * An event that adds nothing to a waiting event of the same path is dropped. When the queue exceeds its bounds, all its
 * events are replaced by one overflow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch_event {
  struct watch_event *next, *next_by_path;
  uint32_t hash;
  uint8_t kind; /* EVENT_... */
  bool directory;
  char path[];
};

struct watch_queue {
  struct watch_event *first, *last;
  struct watch_event **buckets; /* the latest event of each path; NULL while the queue is empty */
  size_t count, bytes;
  bool overflow; /* send an overflow before the events */
};

void watch_queue_add(struct watch_queue *queue, uint8_t kind, const char *path, bool directory);
void watch_queue_overflow(struct watch_queue *queue);
/* Takes the oldest event out; the caller frees it. NULL: none. */
struct watch_event *watch_queue_take(struct watch_queue *queue);
void watch_queue_clear(struct watch_queue *queue);
