/*
 * loop: the one epoll loop of the guest, with timers.
 *
 * A source or a timer is a member of the struct that owns it; container_of gets from it to the owner. Nothing here
 * allocates. A callback may free any source or timer, its own included.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

struct loop_source {
  int fd;
  uint32_t events; /* that the loop waits for; 0: not in the loop */
  void (*ready)(struct loop_source *source, uint32_t events);
};

/* Sets the events (EPOLLIN, EPOLLOUT) to wait for; 0 removes the source, which must happen before its fd is closed. */
bool loop_wait(struct loop_source *source, uint32_t events);
/* loop_wait(source, 0), then closes the fd and sets it to -1. Closing twice is fine. */
void loop_close(struct loop_source *source);

struct loop_timer {
  uint64_t at_us;
  void (*fire)(struct loop_timer *timer);
  bool armed;
  struct loop_timer *child, *next, *back; /* a pairing heap; back is the left sibling or the parent */
};

/* Fires once, delay_us from now; setting again moves it. */
void loop_timer_set(struct loop_timer *timer, uint64_t delay_us, void (*fire)(struct loop_timer *timer));
void loop_timer_clear(struct loop_timer *timer);

/* Microseconds of the monotonic clock. */
uint64_t loop_now(void);

/* Called after the callbacks of each turn; true when it has more to do at once. */
typedef bool (*loop_after)(void);
/* Called once when nothing has happened for a short while after activity: time to give memory back. */
typedef void (*loop_idle)(void);

bool loop_init(void);
void loop_run(loop_after after, loop_idle idle);
