/*
 * link: the connection to the server.
 *
 *     dial ──> HELLO ──> WELCOME ──> frames both ways ──> lost ──> dial again
 *                                                          (at once, then 10 ms, doubling up to 500 ms)
 *
 * Frames to send collect in one buffer that is written once per turn of the loop. Two rules bound it: tasks send
 * only while link_room() holds, and requests are taken from the socket only while it holds. Both buffers are
 * static, so sending cannot fail for lack of memory; their pages go back to the kernel when the link is idle.
 */
#ifndef ISLET_LINK_H
#define ISLET_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

/* Starts dialing. False when the path is too long for a unix socket. */
bool link_start(const char *path);

/* The address of another socket in the directory of the server's; false when it is too long. */
bool link_beside(const char *name, struct sockaddr_un *address);

/* The outgoing buffer is below its high-water mark. False while there is no connection. */
bool link_room(void);

/* Sends a frame. Without a connection it is dropped: whoever sends state keeps it himself. */
void link_send(uint8_t type, uint32_t stream, const void *payload, size_t length);
/* The same without a copy: space for a payload of up to `length` bytes, then what it became. */
uint8_t *link_reserve(size_t length);
void link_commit(uint8_t type, uint32_t stream, size_t length);

/*
 * The same of bytes of a file, which nobody copies. As pread: how many went, 0 at the end of the file, or -1; EINVAL says that
 * they have to be read and sent. Only while link_room() holds, which it does not before they are with the socket.
 */
ssize_t link_send_file(uint8_t type, uint32_t stream, int file, uint64_t offset, size_t length);

/* Gives the connection up once the current frame has been handled; the next dial is delay_ms later. */
void link_hang_up(uint32_t delay_ms);
/* The same because the server broke the protocol. */
void link_break(void);
bool link_welcomed(void);
void link_welcome(void);

/* Handles the frames that have arrived, while answers have room; true when it stopped before the last one. */
bool link_take(void);
/* Writes what collected; closes a connection that was given up. */
void link_flush(void);
void link_idle(void);

/* In a forked worker: from now on frames are written to fd, and the process ends when that fails. */
void link_become_worker(int fd);

#endif
