/*
 * ring: a queue of bytes, addressed by their offset in their stream.
 *
 * The byte with offset o lives at buf[o % cap]. Memory is taken when bytes arrive, doubles up to the
 * owner's maximum (a power of two) and is freed when the ring is empty.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring {
  uint8_t *buf;
  size_t cap;
  uint64_t start, end; /* offsets of the first byte and after the last byte */
};

/* Appends all bytes, or none and returns false if that would exceed max or memory is short. */
bool ring_put(struct ring *ring, const void *bytes, size_t length, size_t max);
/* Free space for about `want` more bytes in one or two pieces; returns their number, 0 if there is no room. The caller adds what it wrote to ring->end. */
int ring_space(struct ring *ring, struct iovec space[2], size_t want, size_t max);
/* The contiguous bytes from offset `from` on; returns their number. */
size_t ring_piece(const struct ring *ring, uint64_t from, const uint8_t **at);
/* Sends what the socket takes now and drops it; the number of bytes. *err is 0, or the errno of a broken connection. */
size_t ring_send(struct ring *ring, int socket, int *err);
/* Drops everything before offset `upto`, which must lie within start and end. */
void ring_drop(struct ring *ring, uint64_t upto);
void ring_free(struct ring *ring);
