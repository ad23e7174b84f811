/*
 * listening: the listening TCP sockets of the sandbox's network.
 *
 * Asked of the kernel by netlink, which looks at nothing else; /proc/net/tcp walks the table of all connections of the
 * machine, which takes milliseconds, and is read only where netlink does not answer.
 */
#ifndef ISLET_LISTENING_H
#define ISLET_LISTENING_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

struct listening {
  char address[INET6_ADDRSTRLEN];
  uint32_t port, uid;
  uint64_t inode;
};

/* Fills in at most `max` and returns how many. */
size_t listening_find(struct listening *found, size_t max);

#endif
