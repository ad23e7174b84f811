#include "net/netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_BYTES = 64 * 1024 };

int nl_open(void) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return -1;
  int on = 1;
  setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  return fd;
}

static struct nlmsghdr *header_of(struct nl *nl) {
  return (struct nlmsghdr *)nl->bytes;
}

/* Requests consist of bounded names and numbers and are far smaller than the buffer. A larger one is a bug; it is cut off. */
static void *reserve(struct nl *nl, size_t length) {
  static char nowhere[NETLINK_BYTES];
  struct nlmsghdr *header = header_of(nl);
  size_t at = NLMSG_ALIGN(header->nlmsg_len), need = NLMSG_ALIGN(length);
  if (need > sizeof nl->bytes - at) return nowhere;
  memset(nl->bytes + at, 0, need);
  header->nlmsg_len = (uint32_t)(at + need);
  return nl->bytes + at;
}

void *nl_begin(struct nl *nl, uint16_t type, uint16_t flags, size_t body) {
  *header_of(nl) = (struct nlmsghdr){.nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags};
  return reserve(nl, body);
}

void nl_put(struct nl *nl, uint16_t type, const void *value, size_t length) {
  if (length > NETLINK_BYTES - RTA_LENGTH(0)) return;
  struct rtattr *attr = reserve(nl, RTA_LENGTH(length));
  attr->rta_type = type;
  attr->rta_len = (uint16_t)RTA_LENGTH(length);
  if (length > 0) memcpy(RTA_DATA(attr), value, length);
}

void nl_put_str(struct nl *nl, uint16_t type, const char *value) {
  nl_put(nl, type, value, strlen(value) + 1);
}

void nl_put_u32(struct nl *nl, uint16_t type, uint32_t value) {
  nl_put(nl, type, &value, sizeof value);
}

void nl_put_u8(struct nl *nl, uint16_t type, uint8_t value) {
  nl_put(nl, type, &value, sizeof value);
}

struct rtattr *nl_nest(struct nl *nl, uint16_t type) {
  struct rtattr *nest = reserve(nl, RTA_LENGTH(0));
  nest->rta_type = type;
  nest->rta_len = RTA_LENGTH(0);
  return nest;
}

void nl_unnest(struct nl *nl, struct rtattr *nest) {
  nest->rta_len = (uint16_t)(nl->bytes + header_of(nl)->nlmsg_len - (char *)nest);
}

void *nl_body(struct nl *nl, size_t length) {
  return reserve(nl, length);
}

static int send_and_receive(int fd, struct nl *nl, void (*each)(const struct nlmsghdr *, void *), void *context) {
  static _Alignas(8) char answer[ANSWER_BYTES];
  struct nlmsghdr *request = header_of(nl);
  if (send(fd, request, request->nlmsg_len, 0) < 0) return -1;
  for (;;) {
    ssize_t got = recv(fd, answer, sizeof answer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    size_t left = (size_t)got;
    for (struct nlmsghdr *header = (struct nlmsghdr *)answer; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type == NLMSG_DONE) return 0;
      if (header->nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *error = NLMSG_DATA(header);
        errno = -error->error;
        return error->error == 0 ? 0 : -1;
      }
      if (each != NULL) each(header, context);
    }
  }
}

int nl_talk(int fd, struct nl *nl) {
  return nl_talk_each(fd, nl, NULL, NULL);
}

int nl_talk_each(int fd, struct nl *nl, void (*each)(const struct nlmsghdr *, void *), void *context) {
  header_of(nl)->nlmsg_flags |= NLM_F_ACK;
  return send_and_receive(fd, nl, each, context);
}

int nl_dump(int fd, struct nl *nl, void (*each)(const struct nlmsghdr *, void *), void *context) {
  header_of(nl)->nlmsg_flags |= NLM_F_DUMP;
  return send_and_receive(fd, nl, each, context);
}

const struct rtattr *nl_link_attr(const struct nlmsghdr *header, uint16_t type) {
  if (header->nlmsg_type != RTM_NEWLINK) return NULL;
  const struct ifinfomsg *info = NLMSG_DATA(header);
  int left = (int)IFLA_PAYLOAD(header);
  for (const struct rtattr *attr = IFLA_RTA(info); RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
    if ((attr->rta_type & NLA_TYPE_MASK) == type) return attr;
  }
  return NULL;
}
