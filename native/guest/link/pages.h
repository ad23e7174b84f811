/*
 * pages: sends bytes of a file to the server without a copy. splice() moves references to the file's pages into a pipe, which
 * tells how many bytes there are, and from there into the socket.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Takes at most `length` bytes from `offset` on. Returns like pread; EINVAL if splice is not supported. Call it only when pages_left() is 0. */
ssize_t pages_take(int file, uint64_t offset, size_t length);
/* Bytes that were taken and not sent yet. */
size_t pages_left(void);
/* Returns like send. EINVAL: the socket does not support splice; use pages_copy. */
ssize_t pages_send(int socket);
/* Copies the remaining bytes to `to`. False if they cannot be read. */
bool pages_copy(uint8_t *to);
/* Discards the remaining bytes and closes the pipe. */
void pages_drop(void);
