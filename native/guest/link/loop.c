#include "link/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
  LOOP_BATCH = 64,   /* events taken per turn */
  LOOP_IDLE_MS = 50, /* without events for this long, the idle hook runs once */
};

static int epoll_fd = -1;
static struct epoll_event batch[LOOP_BATCH];
static int batch_count;
static struct loop_timer *heap;

static struct loop_timer *meld(struct loop_timer *a, struct loop_timer *b);
static void fire_timers(void);
static int wait_ms(bool busy, bool idle_due);

bool loop_init(void) {
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  return epoll_fd >= 0;
}

void loop_run(loop_after after, loop_idle idle) {
  bool busy = after();
  bool idle_due = true;
  for (;;) {
    int n = epoll_wait(epoll_fd, batch, LOOP_BATCH, wait_ms(busy, idle_due));
    if (n < 0) n = 0; /* EINTR: nothing is lost, events are level-triggered */
    bool timer_due = heap != NULL && heap->at_us <= loop_now();
    if (n == 0 && !busy && !timer_due && idle_due) {
      idle();
      idle_due = false;
      continue;
    }
    idle_due = true;
    batch_count = n;
    for (int i = 0; i < batch_count; i++) {
      struct loop_source *source = batch[i].data.ptr;
      if (source != NULL) source->ready(source, batch[i].events);
    }
    batch_count = 0;
    fire_timers();
    busy = after();
  }
}

bool loop_wait(struct loop_source *source, uint32_t events) {
  if (events == source->events) return true;
  struct epoll_event event = {.events = events, .data.ptr = source};
  int op = events == 0 ? EPOLL_CTL_DEL : source->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (epoll_ctl(epoll_fd, op, source->fd, &event) < 0 && op != EPOLL_CTL_DEL) return false;
  source->events = events;
  /* Drops this turn's undelivered events for a source that leaves the loop. */
  if (events == 0) {
    for (int i = 0; i < batch_count; i++) {
      if (batch[i].data.ptr == source) batch[i].data.ptr = NULL;
    }
  }
  return true;
}

void loop_close(struct loop_source *source) {
  if (source->fd < 0) return;
  loop_wait(source, 0);
  close(source->fd);
  source->fd = -1;
}

uint64_t loop_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void loop_timer_set(struct loop_timer *timer, uint64_t delay_us, void (*fire)(struct loop_timer *timer)) {
  loop_timer_clear(timer);
  uint64_t now = loop_now();
  timer->at_us = delay_us > UINT64_MAX - now ? UINT64_MAX : now + delay_us;
  timer->fire = fire;
  timer->armed = true;
  timer->child = timer->next = timer->back = NULL;
  heap = meld(heap, timer);
}

/* Melds the children of a removed node pairwise, then all of them from right to left. */
static struct loop_timer *meld_children(struct loop_timer *first) {
  struct loop_timer *pairs = NULL;
  while (first != NULL) {
    struct loop_timer *a = first, *b = first->next;
    first = b == NULL ? NULL : b->next;
    a->next = a->back = NULL;
    if (b != NULL) b->next = b->back = NULL;
    a = meld(a, b);
    a->next = pairs;
    pairs = a;
  }
  struct loop_timer *root = NULL;
  while (pairs != NULL) {
    struct loop_timer *rest = pairs->next;
    pairs->next = NULL;
    root = meld(root, pairs);
    pairs = rest;
  }
  return root;
}

void loop_timer_clear(struct loop_timer *timer) {
  if (!timer->armed) return;
  timer->armed = false;
  struct loop_timer *below = meld_children(timer->child);
  timer->child = NULL;
  if (timer == heap) {
    heap = below;
    return;
  }
  if (timer->back->child == timer) timer->back->child = timer->next;
  else timer->back->next = timer->next;
  if (timer->next != NULL) timer->next->back = timer->back;
  heap = meld(heap, below);
}

static struct loop_timer *meld(struct loop_timer *a, struct loop_timer *b) {
  if (a == NULL) return b;
  if (b == NULL) return a;
  if (b->at_us < a->at_us) {
    struct loop_timer *t = a;
    a = b;
    b = t;
  }
  b->next = a->child;
  b->back = a;
  if (a->child != NULL) a->child->back = b;
  a->child = b;
  return a;
}

static void fire_timers(void) {
  uint64_t now = loop_now();
  while (heap != NULL && heap->at_us <= now) {
    struct loop_timer *timer = heap;
    loop_timer_clear(timer);
    timer->fire(timer);
  }
}

static int wait_ms(bool busy, bool idle_due) {
  if (busy) return 0;
  int ms = idle_due ? LOOP_IDLE_MS : -1;
  if (heap != NULL) {
    uint64_t now = loop_now();
    uint64_t left = heap->at_us <= now ? 0 : (heap->at_us - now + 999) / 1000;
    if (ms < 0 || left < (uint64_t)ms) ms = left > 3600000 ? 3600000 : (int)left;
  }
  return ms;
}
