/*
 * listening: the listening TCP sockets of the sandbox's network.
 *
 * Uses netlink, which looks at listening sockets only. /proc/net/tcp walks the machine's table of all connections, which
 * takes milliseconds; it is read only if netlink does not answer.
 */
#pragma once

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

struct listening {
  char address[INET6_ADDRSTRLEN];
  uint32_t port, uid;
  uint64_t inode;
};

/* Fills in at most `max` sockets and returns their number. */
size_t listening_find(struct listening *found, size_t max);
