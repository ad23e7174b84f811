/*
 * ring: bytes that wait, counted from the beginning of their stream.
 *
 * The byte with offset o lives at buf[o % cap]. Memory is taken when bytes arrive, doubles up to the
 * owner's maximum (a power of two) and is given back when the ring is empty.
 */
#ifndef ISLET_RING_H
#define ISLET_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring {
  uint8_t *buf;
  size_t cap;
  uint64_t start, end; /* it holds the bytes with these offsets, end excluded */
};

/* Appends; false when max would be passed or memory is short, and then nothing is appended. */
bool ring_put(struct ring *ring, const void *bytes, size_t length, size_t max);
/* Free space for about `want` more bytes as one or two pieces; returns the pieces, 0: no room. Then add to ring->end. */
int ring_space(struct ring *ring, struct iovec space[2], size_t want, size_t max);
/* The bytes from offset `from` on that lie in one piece. */
size_t ring_piece(const struct ring *ring, uint64_t from, const uint8_t **at);
/* Sends what the socket takes now and drops it; the number of bytes. *err is 0, or the errno of a broken connection. */
size_t ring_send(struct ring *ring, int socket, int *err);
/* Drops everything before offset `upto`, which must lie within start and end. */
void ring_drop(struct ring *ring, uint64_t upto);
void ring_free(struct ring *ring);

#endif
