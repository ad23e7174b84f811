#include "net/conntrack.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sys/socket.h>

#include "net/netlink.h"

/* Bit of CTA_FILTER_ORIG_FLAGS that compares the source address; the headers do not name it. */
enum { FILTER_IP_SRC = 1 };

void conntrack_forget(uint32_t address) {
  AUTO_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  if (fd < 0) return;
  struct nl nl;
  struct nfgenmsg *body = nl_begin(&nl, NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE, 0, sizeof *body);
  *body = (struct nfgenmsg){.nfgen_family = AF_INET, .version = NFNETLINK_V0};
  struct rtattr *tuple = nl_nest(&nl, CTA_TUPLE_ORIG | NLA_F_NESTED);
  struct rtattr *ends = nl_nest(&nl, CTA_TUPLE_IP | NLA_F_NESTED);
  nl_put_u32(&nl, CTA_IP_V4_SRC, address);
  nl_unnest(&nl, ends);
  nl_unnest(&nl, tuple);
  struct rtattr *filter = nl_nest(&nl, CTA_FILTER | NLA_F_NESTED);
  nl_put_u32(&nl, CTA_FILTER_ORIG_FLAGS, FILTER_IP_SRC);
  nl_put_u32(&nl, CTA_FILTER_REPLY_FLAGS, 0);
  nl_unnest(&nl, filter);
  nl_talk(fd, &nl);
}
