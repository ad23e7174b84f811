#include "link/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { RING_MIN = 1024 };

/* Makes cap at least `bytes`; both are at most the owner's maximum. */
static bool grow(struct ring *ring, size_t bytes) {
  if (bytes <= ring->cap) return true;
  size_t cap = ring->cap == 0 ? RING_MIN : ring->cap;
  while (cap < bytes) cap *= 2;
  uint8_t *buf = malloc(cap);
  if (buf == NULL) return false;
  for (uint64_t at = ring->start; at < ring->end;) {
    const uint8_t *piece;
    size_t n = ring_piece(ring, at, &piece);
    for (size_t i = 0; i < n;) {
      size_t to = (size_t)((at + i) & (cap - 1));
      size_t part = n - i < cap - to ? n - i : cap - to;
      memcpy(buf + to, piece + i, part);
      i += part;
    }
    at += n;
  }
  free(ring->buf);
  ring->buf = buf;
  ring->cap = cap;
  return true;
}

bool ring_put(struct ring *ring, const void *bytes, size_t length, size_t max) {
  if (length == 0) return true;
  size_t used = (size_t)(ring->end - ring->start);
  if (length > max - used || !grow(ring, used + length)) return false;
  size_t at = (size_t)(ring->end & (ring->cap - 1));
  size_t first = length < ring->cap - at ? length : ring->cap - at;
  memcpy(ring->buf + at, bytes, first);
  memcpy(ring->buf, (const uint8_t *)bytes + first, length - first);
  ring->end += length;
  return true;
}

int ring_space(struct ring *ring, struct iovec space[2], size_t want, size_t max) {
  size_t used = (size_t)(ring->end - ring->start);
  if (want > max - used) want = max - used;
  if (want == 0) return 0;
  if (!grow(ring, used + want) && ring->cap == used) return 0;
  size_t room = ring->cap - used;
  size_t at = (size_t)(ring->end & (ring->cap - 1));
  size_t first = room < ring->cap - at ? room : ring->cap - at;
  space[0] = (struct iovec){ring->buf + at, first};
  space[1] = (struct iovec){ring->buf, room - first};
  return room > first ? 2 : 1;
}

size_t ring_piece(const struct ring *ring, uint64_t from, const uint8_t **at) {
  if (from >= ring->end) return 0;
  size_t index = (size_t)(from & (ring->cap - 1));
  size_t left = (size_t)(ring->end - from);
  *at = ring->buf + index;
  return left < ring->cap - index ? left : ring->cap - index;
}

size_t ring_send(struct ring *ring, int socket, int *err) {
  uint64_t from = ring->start;
  const uint8_t *bytes;
  size_t length;
  *err = 0;
  while ((length = ring_piece(ring, ring->start, &bytes)) > 0) {
    ssize_t n = send(socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) ring_drop(ring, ring->start + (uint64_t)n);
    else if (errno == EAGAIN) break;
    else if (errno != EINTR) {
      *err = errno;
      break;
    }
  }
  return (size_t)(ring->start - from);
}

void ring_drop(struct ring *ring, uint64_t upto) {
  ring->start = upto;
  if (ring->start == ring->end) ring_free(ring);
}

void ring_free(struct ring *ring) {
  free(ring->buf);
  ring->buf = NULL;
  ring->cap = 0;
  ring->start = ring->end;
}
