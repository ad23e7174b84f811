#include "watch/queue.h"

#include <stdlib.h>
#include <string.h>

#include "link/hash.h"
#include "message.h"

enum {
  WATCH_QUEUE_BUCKETS = 512,
  WATCH_QUEUE_MAX_EVENTS = 16384,
  WATCH_QUEUE_MAX_BYTES = 2 * 1024 * 1024,
};

static struct watch_event **latest(struct watch_queue *queue, const char *path, uint32_t hash) {
  struct watch_event **at = &queue->buckets[hash % WATCH_QUEUE_BUCKETS];
  while (*at != NULL && ((*at)->hash != hash || strcmp((*at)->path, path) != 0)) at = &(*at)->next_by_path;
  return at;
}

void watch_queue_add(struct watch_queue *queue, uint8_t kind, const char *path, bool directory) {
  uint32_t hash = hash_text(path);
  size_t bytes = sizeof(struct watch_event) + strlen(path) + 1;
  if (queue->buckets == NULL) queue->buckets = calloc(WATCH_QUEUE_BUCKETS, sizeof(struct watch_event *));
  if (queue->buckets == NULL) {
    watch_queue_overflow(queue);
    return;
  }
  struct watch_event **at = latest(queue, path, hash);
  /* A client that looks at a created or changed file sees its later changes, too. */
  if (*at != NULL && ((*at)->kind == kind || ((*at)->kind == EVENT_CREATED && kind == EVENT_CHANGED))) return;
  bool fits = queue->count < WATCH_QUEUE_MAX_EVENTS && queue->bytes + bytes <= WATCH_QUEUE_MAX_BYTES;
  struct watch_event *event = fits ? malloc(bytes) : NULL;
  if (event == NULL) {
    watch_queue_overflow(queue);
    return;
  }
  *event = (struct watch_event){.hash = hash, .kind = kind, .directory = directory};
  strcpy(event->path, path);
  if (*at != NULL) { /* replaces the path's previous event in the index */
    event->next_by_path = (*at)->next_by_path;
    (*at)->next_by_path = NULL;
  }
  *at = event;
  if (queue->last != NULL) queue->last->next = event;
  else queue->first = event;
  queue->last = event;
  queue->count++;
  queue->bytes += bytes;
}

void watch_queue_overflow(struct watch_queue *queue) {
  watch_queue_clear(queue);
  queue->overflow = true;
}

struct watch_event *watch_queue_take(struct watch_queue *queue) {
  struct watch_event *event = queue->first;
  if (event == NULL) return NULL;
  struct watch_event **at = latest(queue, event->path, event->hash);
  if (*at == event) *at = event->next_by_path;
  queue->first = event->next;
  queue->count--;
  queue->bytes -= sizeof *event + strlen(event->path) + 1;
  if (queue->first == NULL) {
    queue->last = NULL;
    free(queue->buckets);
    queue->buckets = NULL;
  }
  return event;
}

void watch_queue_clear(struct watch_queue *queue) {
  struct watch_event *event;
  while ((event = watch_queue_take(queue)) != NULL) free(event);
  queue->overflow = false;
  free(queue->buckets);
  queue->buckets = NULL;
}
