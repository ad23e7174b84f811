#include "net/join.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "link/loop.h"
#include "link/ring.h"

enum { JOIN_LINGER_US = 1000 * 1000 };

struct side {
  struct loop_source source;
  struct ring out;  /* bytes of the other side that this side has not taken yet */
  bool ended;       /* it sends no more */
  bool shut;        /* it was told that the other side sends no more */
  bool gone;        /* it is closed: bytes for it are discarded */
  struct joined *joined;
};

struct joined {
  struct side sides[2];
  struct loop_timer linger;
  void (*over)(void);
  struct joined *next, **at;
};

/* All joined pairs: otherwise only epoll would hold pointers to them, and a leak checker would report them. */
static struct joined *all;

static void ready(struct loop_source *source, uint32_t events);

static struct side *other_of(struct side *side) {
  return &side->joined->sides[side == side->joined->sides];
}

static void update_interest(struct side *side) {
  const struct side *other = other_of(side);
  bool read_more = !side->ended && (other->gone || other->out.end - other->out.start < JOIN_BUFFER);
  bool write_more = side->out.start < side->out.end;
  uint32_t events = (read_more ? EPOLLIN : 0) | (write_more ? EPOLLOUT : 0);
  /* EPOLLET alone still reports a hang-up. After the hang-up the source leaves the loop. */
  loop_wait(&side->source, events != 0 ? events : side->gone ? 0 : EPOLLET);
}

static void release(struct joined *joined) {
  void (*over)(void) = joined->over;
  loop_timer_clear(&joined->linger);
  *joined->at = joined->next;
  if (joined->next != NULL) joined->next->at = joined->at;
  for (int i = 0; i < 2; i++) {
    loop_close(&joined->sides[i].source);
    ring_free(&joined->sides[i].out);
  }
  free(joined);
  over();
}

static void on_linger_over(struct loop_timer *timer) {
  release(container_of(timer, struct joined, linger));
}

bool join_start(int one, int other, void (*over)(void)) {
  struct joined *joined = calloc(1, sizeof *joined);
  if (joined == NULL) {
    close(one);
    close(other);
    return false;
  }
  joined->over = over;
  joined->at = &all;
  joined->next = all;
  if (all != NULL) all->at = &joined->next;
  all = joined;
  const int fds[2] = {one, other};
  for (int i = 0; i < 2; i++) {
    joined->sides[i].joined = joined;
    joined->sides[i].source = (struct loop_source){.fd = fds[i], .ready = ready};
  }
  for (int i = 0; i < 2; i++) update_interest(&joined->sides[i]);
  return true;
}

static void pull(struct side *side) {
  struct side *other = other_of(side);
  struct ring *to = &other->out;
  struct iovec space[2];
  uint8_t discarded[4096];
  int pieces = 1;
  if (other->gone) space[0] = (struct iovec){discarded, sizeof discarded};
  else pieces = ring_space(to, space, JOIN_BUFFER, JOIN_BUFFER);
  bool no_memory = pieces == 0 && to->start == to->end;
  if (pieces == 0 && !no_memory) return;
  ssize_t n = no_memory ? -1 : readv(side->source.fd, space, pieces);
  if (n < 0 && !no_memory && (errno == EAGAIN || errno == EINTR)) n = 0;
  else if (n <= 0) side->ended = true;
  if (n < 0) side->gone = true;
  if (n > 0 && !other->gone) to->end += (uint64_t)n;
  if (to->start == to->end) ring_free(to);
}

/* Sends what waits for this side, then passes on the other side's end. */
static void push(struct side *side) {
  int err = 0;
  if (!side->gone) ring_send(&side->out, side->source.fd, &err);
  if (err != 0) side->gone = true;
  if (side->gone) ring_free(&side->out);
  if (side->out.start < side->out.end || !other_of(side)->ended || side->shut) return;
  side->shut = true;
  shutdown(side->source.fd, SHUT_WR);
}

static void ready(struct loop_source *source, uint32_t events) {
  struct side *side = container_of(source, struct side, source);
  struct side *other = other_of(side);
  if (events & (EPOLLHUP | EPOLLERR)) side->gone = true;
  if (!side->ended && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) pull(side);
  push(side);
  push(other);
  if (side->shut && other->shut) {
    release(side->joined);
    return;
  }
  bool lingers = (side->gone && other->shut) || (other->gone && side->shut);
  if (lingers && !side->joined->linger.armed) loop_timer_set(&side->joined->linger, JOIN_LINGER_US, on_linger_over);
  update_interest(side);
  update_interest(other);
}
