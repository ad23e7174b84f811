/*
 * pages: bytes of a file on their way to the server without a copy. splice() puts references to the file's pages into a
 * pipe, which tells how many bytes there are, and from there into the socket.
 */
#ifndef ISLET_PAGES_H
#define ISLET_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Takes at most `length` bytes from `offset` on; as pread, and EINVAL where a file or a kernel does not take part. Nothing may be left from before. */
ssize_t pages_take(int file, uint64_t offset, size_t length);
/* Bytes that were taken and not sent. */
size_t pages_left(void);
/* As send: how many bytes went, or -1. EINVAL is a socket that does not take part: then pages_copy. */
ssize_t pages_send(int socket);
/* The bytes that are left, by a copy. False when they cannot be read. */
bool pages_copy(uint8_t *to);
/* Throws away what is left, and gives the pipe back. */
void pages_drop(void);

#endif
