#include "net/listening.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io.h"

enum { LISTENING_STATE = 10 }; /* TCP_LISTEN, also in /proc/net/tcp */

struct list {
  struct listening *found;
  size_t count, max;
};

static bool ask(int fd, int family, struct list *list);
static void read_file(const char *path, int family, struct list *list);

size_t listening_find(struct listening *found, size_t max) {
  struct list list = {found, 0, max};
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  bool asked = fd >= 0 && ask(fd, AF_INET, &list) && ask(fd, AF_INET6, &list);
  if (fd >= 0) close(fd);
  if (!asked) {
    list.count = 0;
    read_file("/proc/net/tcp", AF_INET, &list);
    read_file("/proc/net/tcp6", AF_INET6, &list);
  }
  return list.count;
}

static void add(struct list *list, int family, const void *address, uint32_t port, uint32_t uid, uint64_t inode) {
  if (list->count == list->max) return;
  struct listening *one = &list->found[list->count];
  if (inet_ntop(family, address, one->address, sizeof one->address) == NULL) return;
  one->port = port;
  one->uid = uid;
  one->inode = inode;
  list->count++;
}

/* Handles the messages of one datagram: 1: more datagrams follow, 0: it was the last, -1: the kernel refused. */
static int take(const char *bytes, ssize_t length, struct list *list) {
  for (const struct nlmsghdr *header = (const struct nlmsghdr *)bytes; NLMSG_OK(header, (size_t)length);
       header = NLMSG_NEXT(header, length)) {
    if (header->nlmsg_type == NLMSG_DONE) return 0;
    if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) return -1;
    const struct inet_diag_msg *socket = NLMSG_DATA(header);
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof *socket)) return -1;
    add(list, socket->idiag_family, socket->id.idiag_src, ntohs(socket->id.idiag_sport), socket->idiag_uid, socket->idiag_inode);
  }
  return 1;
}

static bool ask(int fd, int family, struct list *list) {
  struct {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
  } question = {
      .header = {.nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
      .request = {.sdiag_family = (uint8_t)family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = 1u << LISTENING_STATE},
  };
  if (send(fd, &question, sizeof question, 0) != sizeof question) return false;
  static char answer[32 * 1024] __attribute__((aligned(NLMSG_ALIGNTO)));
  for (;;) {
    /* The kernel produces a dump while it is read, so recv never has to wait. */
    ssize_t n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    if (n <= 0) return false;
    int more = take(answer, n, list);
    if (more <= 0) return more == 0;
  }
}

/* The kernel prints addresses as 32-bit words in its own byte order. */
static bool read_address(const char *text, int family, uint32_t words[4]) {
  int count = family == AF_INET ? 1 : 4;
  for (int i = 0; i < count; i++) {
    if (sscanf(text + 8 * i, "%8x", &words[i]) != 1) return false;
  }
  return strlen(text) == (size_t)count * 8;
}

static void read_file(const char *path, int family, struct list *list) {
  AUTO_CLOSE_FILE FILE *file = fopen(path, "re");
  if (file == NULL) return; /* no IPv6 or no /proc */
  char line[512];
  while (fgets(line, sizeof line, file) != NULL) {
    char local[64];
    unsigned port, state, uid;
    unsigned long long inode;
    uint32_t words[4];
    if (sscanf(line, " %*u: %63[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %u %*u %llu", local, &port, &state,
               &uid, &inode) != 5) continue;
    if (state == LISTENING_STATE && read_address(local, family, words)) add(list, family, words, port, uid, inode);
  }
}
