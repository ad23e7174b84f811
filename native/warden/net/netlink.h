/* netlink: builds and sends one request at a time and reads its answer. */
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "warden.h"

enum { NETLINK_BYTES = 1024 };

struct nl {
  _Alignas(8) char bytes[NETLINK_BYTES];
};

/* A socket in the caller's current network namespace, where it stays. -1 with errno. */
int nl_open(void);
/* Starts a request; returns its zeroed body (ifinfomsg, ifaddrmsg, rtmsg). */
void *nl_begin(struct nl *nl, uint16_t type, uint16_t flags, size_t body);
void nl_put(struct nl *nl, uint16_t type, const void *value, size_t length);
void nl_put_str(struct nl *nl, uint16_t type, const char *value);
void nl_put_u32(struct nl *nl, uint16_t type, uint32_t value);
void nl_put_u8(struct nl *nl, uint16_t type, uint8_t value);
struct rtattr *nl_nest(struct nl *nl, uint16_t type);
void nl_unnest(struct nl *nl, struct rtattr *nest);
/* Appends `length` bytes of body inside a nest (the veth peer's ifinfomsg). */
void *nl_body(struct nl *nl, size_t length);
/* Sends it and waits for the acknowledgement: 0, or -1 with errno. */
int nl_talk(int fd, struct nl *nl);
/* The same for a request that is answered with a message, which `each` gets. */
int nl_talk_each(int fd, struct nl *nl, void (*each)(const struct nlmsghdr *header, void *context), void *context);
/* Sends a dump request and calls `each` for every message of the answer. */
int nl_dump(int fd, struct nl *nl, void (*each)(const struct nlmsghdr *header, void *context), void *context);
/* The attribute of a link message, or NULL. */
const struct rtattr *nl_link_attr(const struct nlmsghdr *header, uint16_t type);
