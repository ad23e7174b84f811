/*
 * link: the connection to the server.
 *
 *     dial ──> HELLO ──> WELCOME ──> frames both ways ──> lost ──> dial again
 *                                                          (at once, then 10 ms, doubling up to 500 ms)
 *
 * Outgoing frames collect in one buffer that is written once per turn of the loop. Two rules bound it: tasks send only
 * while link_room() is true, and requests are read only while it is true. Both buffers are static, so sending cannot
 * fail for lack of memory; their pages go back to the kernel when the link is idle.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

/* Starts dialing. False when the path is too long for a unix socket. */
bool link_start(const char *path);

/* The address of the socket `name` beside the server's socket; false when it is too long. */
bool link_beside(const char *name, struct sockaddr_un *address);

/* Whether the outgoing buffer is below its high-water mark. False without a connection. */
bool link_room(void);

/* Sends a frame. Without a connection the frame is dropped: callers keep any state that must survive. */
void link_send(uint8_t type, uint32_t stream, const void *payload, size_t length);
/* The same without a copy: reserve space for up to `length` bytes, write the payload there, commit its real length. */
uint8_t *link_reserve(size_t length);
void link_commit(uint8_t type, uint32_t stream, size_t length);

/*
 * The same for bytes of a file, by splice. Returns like pread: the number of bytes, 0 at the end of the file, or -1; EINVAL
 * means that this file or socket cannot be spliced and the caller has to read and send. Call it only while link_room() is
 * true; link_room() is false until the bytes are in the socket.
 */
ssize_t link_send_file(uint8_t type, uint32_t stream, int file, uint64_t offset, size_t length);

/* Closes the connection after the current frame; dials again delay_ms later. */
void link_hang_up(uint32_t delay_ms);
/* Closes the connection because the server broke the protocol. */
void link_break(void);
bool link_welcomed(void);
void link_welcome(void);

/* Handles received frames while answers have room; true if frames are left. */
bool link_take(void);
/* Writes the collected frames; closes a connection that link_hang_up or link_break gave up. */
void link_flush(void);
void link_idle(void);

/* In a forked worker: frames are written to fd from now on; the process exits if that fails. */
void link_become_worker(int fd);
