#include "net/sockets.h"

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/netlink.h"

enum {
  BATCH = 512,
  MAX_BATCHES = 256, /* more sockets than a sandbox has ports, in each family */
  STATES = ~(1u << TCP_LISTEN | 1u << TCP_TIME_WAIT),
};

struct batch {
  struct inet_diag_sockid id[BATCH];
  unsigned count;
  uint8_t family;
};

static bool is_loopback(uint8_t family, const uint32_t *address) {
  uint32_t last = ntohl(address[family == AF_INET ? 0 : 3]);
  if (family == AF_INET) return last >> 24 == 127 || last == 0;
  if (address[0] == 0 && address[1] == 0 && address[2] == 0) return last <= 1;
  bool is_mapped = address[0] == 0 && address[1] == 0 && ntohl(address[2]) == 0xffff;
  return is_mapped && (last >> 24 == 127 || last == 0);
}

/* The next dump finds the sockets that do not fit this batch. */
static void collect(const struct nlmsghdr *header, void *context) {
  struct batch *batch = context;
  if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY || header->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg))) return;
  const struct inet_diag_msg *socket = NLMSG_DATA(header);
  if (batch->count == BATCH || is_loopback(batch->family, socket->id.idiag_src)) return;
  batch->id[batch->count++] = socket->id;
}

static struct inet_diag_req_v2 *begin(struct nl *nl, uint16_t type, uint8_t family, uint8_t protocol) {
  struct inet_diag_req_v2 *body = nl_begin(nl, type, 0, sizeof *body);
  body->sdiag_family = family;
  body->sdiag_protocol = protocol;
  body->idiag_states = STATES;
  return body;
}

/* Whether a socket was ended. */
static bool end_batch(int fd, const struct batch *batch, uint8_t protocol, uint64_t deadline_us) {
  bool ended = false;
  for (unsigned i = 0; i < batch->count && now_us() < deadline_us; i++) {
    struct nl nl;
    begin(&nl, SOCK_DESTROY, batch->family, protocol)->id = batch->id[i];
    if (nl_talk(fd, &nl) == 0) ended = true;
  }
  return ended;
}

static void end_of(int fd, uint8_t family, uint8_t protocol, uint64_t deadline_us) {
  static struct batch batch;
  for (unsigned i = 0; i < MAX_BATCHES && now_us() < deadline_us; i++) {
    struct nl nl;
    begin(&nl, SOCK_DIAG_BY_FAMILY, family, protocol);
    batch.count = 0;
    batch.family = family;
    if (nl_dump(fd, &nl, collect, &batch) < 0 || !end_batch(fd, &batch, protocol, deadline_us)) return;
  }
}

void sockets_end(uint64_t limit_ms) {
  uint64_t deadline_us = now_us() + limit_ms * 1000;
  static const uint8_t families[] = {AF_INET, AF_INET6}, protocols[] = {IPPROTO_TCP, IPPROTO_UDP};
  AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return;
  for (unsigned i = 0; i < 2; i++) {
    for (unsigned j = 0; j < 2; j++) end_of(fd, families[i], protocols[j], deadline_us);
  }
}
