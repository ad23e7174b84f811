#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cell/cell.h"
#include "net/conntrack.h"
#include "net/netlink.h"
#include "net/sockets.h"

static const char INNER[] = "eth0";

/* How long ending connections may take before the pair is deleted, and after. */
enum { SOCKETS_TOLD_MS = 200, SOCKETS_ENDED_MS = 5000 };

/* In the caller's current network namespace. A kernel without IPv6 lacks the IPv6 files, which is fine. */
static int write_sysctl(const char *key, const char *value, struct fail *fail) {
  char path[128];
  snprintf(path, sizeof path, "/proc/sys/net/%s", key);
  AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return 0;
  if (fd < 0 || write(fd, value, strlen(value)) < 0) return fail_errno(fail, "sysctl", "%s", key);
  return 0;
}

static int disable_ipv6(const char *interface, struct fail *fail) {
  char key[64];
  snprintf(key, sizeof key, "ipv6/conf/%s/disable_ipv6", interface);
  return write_sysctl(key, "1", fail);
}

struct link {
  uint32_t index, master, peer; /* peer: the index of a veth's other end, in that end's namespace */
  bool found, veth, bridge;
};

static void read_link(const struct nlmsghdr *header, void *context) {
  struct link *link = context;
  const struct rtattr *master = nl_link_attr(header, IFLA_MASTER), *info = nl_link_attr(header, IFLA_LINKINFO);
  const struct rtattr *peer = nl_link_attr(header, IFLA_LINK);
  link->found = true;
  link->index = (uint32_t)((const struct ifinfomsg *)NLMSG_DATA(header))->ifi_index;
  if (peer != NULL && RTA_PAYLOAD(peer) == 4) memcpy(&link->peer, RTA_DATA(peer), 4);
  if (master != NULL && RTA_PAYLOAD(master) == 4) memcpy(&link->master, RTA_DATA(master), 4);
  if (info == NULL) return;
  int left = (int)RTA_PAYLOAD(info);
  for (const struct rtattr *attr = RTA_DATA(info); RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
    if (attr->rta_type != IFLA_INFO_KIND) continue;
    link->veth = strncmp(RTA_DATA(attr), "veth", RTA_PAYLOAD(attr)) == 0;
    link->bridge = strncmp(RTA_DATA(attr), "bridge", RTA_PAYLOAD(attr)) == 0;
  }
}

/* The interface `name` in the network namespace of a socket; found is false if there is none. */
static struct link look_up(int fd, const char *name) {
  struct link link = {0};
  struct nl nl;
  nl_begin(&nl, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
  nl_put_str(&nl, IFLA_IFNAME, name);
  nl_put_u32(&nl, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
  nl_talk_each(fd, &nl, read_link, &link);
  return link;
}

static struct link find_link(const char *name) {
  AUTO_CLOSE int fd = nl_open();
  return fd < 0 ? (struct link){0} : look_up(fd, name);
}

static int delete_link(int fd, const char *name) {
  struct nl nl;
  nl_begin(&nl, RTM_DELLINK, 0, sizeof(struct ifinfomsg));
  nl_put_str(&nl, IFLA_IFNAME, name);
  return nl_talk(fd, &nl);
}

/*
 * Derives the hardware address from the IP address. A bridge would otherwise use the lowest address of its ports, which changes as
 * sandboxes come and go, and a reused IP address would get a new hardware address while the other side still remembers the
 * old one for some seconds.
 */
static void put_hardware_address(struct nl *nl, uint32_t address) {
  uint8_t hardware[6] = {0x02 /* unicast, locally administered */, 'I'};
  memcpy(hardware + 2, &address, 4);
  nl_put(nl, IFLA_ADDRESS, hardware, sizeof hardware);
}

/* Makes the pair, down: its inner end directly in net_ns, its outer end as a port of the bridge. */
static int create_pair(int fd, const struct network *network, int net_ns, unsigned bridge) {
  struct nl nl;
  nl_begin(&nl, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
  nl_put_str(&nl, IFLA_IFNAME, network->veth);
  nl_put_u32(&nl, IFLA_MASTER, bridge);
  struct rtattr *info = nl_nest(&nl, IFLA_LINKINFO);
  nl_put_str(&nl, IFLA_INFO_KIND, "veth");
  struct rtattr *data = nl_nest(&nl, IFLA_INFO_DATA);
  struct rtattr *peer = nl_nest(&nl, VETH_INFO_PEER);
  nl_body(&nl, sizeof(struct ifinfomsg));
  nl_put_str(&nl, IFLA_IFNAME, INNER);
  put_hardware_address(&nl, network->address);
  nl_put_u32(&nl, IFLA_NET_NS_FD, (uint32_t)net_ns);
  nl_unnest(&nl, peer);
  nl_unnest(&nl, data);
  nl_unnest(&nl, info);
  return nl_talk(fd, &nl);
}

/* Isolates the port before it is up, so that two sandboxes never see each other. */
static int isolate_and_raise(int fd, const char *veth) {
  struct nl nl;
  struct ifinfomsg *link = nl_begin(&nl, RTM_NEWLINK, 0, sizeof *link);
  link->ifi_flags = link->ifi_change = IFF_UP;
  nl_put_str(&nl, IFLA_IFNAME, veth);
  struct rtattr *info = nl_nest(&nl, IFLA_LINKINFO);
  nl_put_str(&nl, IFLA_INFO_SLAVE_KIND, "bridge");
  struct rtattr *data = nl_nest(&nl, IFLA_INFO_SLAVE_DATA);
  nl_put_u8(&nl, IFLA_BRPORT_ISOLATED, 1);
  nl_unnest(&nl, data);
  nl_unnest(&nl, info);
  return nl_talk(fd, &nl);
}

static int raise_link(int fd, const char *name) {
  struct nl nl;
  struct ifinfomsg *link = nl_begin(&nl, RTM_NEWLINK, 0, sizeof *link);
  link->ifi_flags = link->ifi_change = IFF_UP;
  nl_put_str(&nl, IFLA_IFNAME, name);
  return nl_talk(fd, &nl);
}

static int set_address(int fd, unsigned index, uint32_t address, uint32_t prefix) {
  struct nl nl;
  struct ifaddrmsg *body = nl_begin(&nl, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, sizeof *body);
  *body = (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_prefixlen = (uint8_t)prefix, .ifa_index = index};
  nl_put(&nl, IFA_LOCAL, &address, 4);
  nl_put(&nl, IFA_ADDRESS, &address, 4);
  if (prefix < 31) {
    uint32_t broadcast = address | htonl(0xffffffffu >> prefix);
    nl_put(&nl, IFA_BROADCAST, &broadcast, 4);
  }
  return nl_talk(fd, &nl);
}

static int set_default_route(int fd, unsigned index, uint32_t gateway) {
  struct nl nl;
  struct rtmsg *body = nl_begin(&nl, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, sizeof *body);
  *body = (struct rtmsg){.rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_protocol = RTPROT_STATIC,
                         .rtm_scope = RT_SCOPE_UNIVERSE, .rtm_type = RTN_UNICAST};
  nl_put(&nl, RTA_GATEWAY, &gateway, 4);
  nl_put_u32(&nl, RTA_OIF, index);
  return nl_talk(fd, &nl);
}

/*
 * A lock that is held while a pair is made. The kernel makes pairs one at a time, and a write to disable_ipv6 meanwhile spins
 * instead of waiting.
 */
static int take_turn(void) {
  int fd = openat(warden.scratch_fd, "network", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) flock(fd, LOCK_EX);
  return fd;
}

/* In the host's network namespace. */
static int plug_in(int fd, const struct network *network, int net_ns, unsigned bridge, struct fail *fail) {
  AUTO_CLOSE int turn = take_turn();
  if (create_pair(fd, network, net_ns, bridge) < 0) return fail_errno(fail, "network", "create %s", network->veth);
  if (disable_ipv6(network->veth, fail) == 0 && isolate_and_raise(fd, network->veth) == 0) return 0;
  fail_errno(fail, "network", "raise %s", network->veth);
  delete_link(fd, network->veth);
  return -1;
}

/* In the cell's network namespace: what every sandbox has, with or without a network. */
static int set_up_loopback(int fd, uint32_t uid_base, struct fail *fail) {
  char range[32];
  if (raise_link(fd, "lo") < 0) return fail_errno(fail, "network", "raise lo");
  /* These are host ids: the kernel interprets them in the writer's user namespace. */
  snprintf(range, sizeof range, "%u %u", uid_base, uid_base + UIDS_PER_SANDBOX - 1);
  if (write_sysctl("ipv4/ping_group_range", range, fail) < 0) return -1;
  return write_sysctl("ipv4/ip_unprivileged_port_start", "0", fail);
}

static int set_up_inner(int fd, const struct network *network, unsigned index, struct fail *fail) {
  if (disable_ipv6(INNER, fail) < 0) return -1;
  if (raise_link(fd, INNER) < 0) return fail_errno(fail, "network", "raise %s", INNER);
  if (set_address(fd, index, network->address, network->prefix) < 0) return fail_errno(fail, "network", "address");
  if (set_default_route(fd, index, network->gateway) < 0) return fail_errno(fail, "network", "default route");
  return 0;
}

/* In the cell's network namespace: checks and sets up the inner end, or deletes it if there is to be no network. */
static int attach_inside(int fd, const struct network *network, const struct link *outer, bool is_new, struct fail *fail) {
  struct link inner = look_up(fd, INNER);
  if (network == NULL) {
    /* This deletes both ends. */
    return inner.found && delete_link(fd, INNER) < 0 ? fail_errno(fail, "network", "delete %s", INNER) : 0;
  }
  if (!inner.veth || inner.index != outer->peer || inner.peer != outer->index) {
    return fail_kind(fail, KIND_EXISTS, "network", "%s belongs to another sandbox", network->veth);
  }
  return is_new ? set_up_inner(fd, network, inner.index, fail) : 0;
}

/* On the host: finds or makes the pair; *is_new tells which. */
static int attach_outside(const struct network *network, int net_ns, int *undo, struct link *outer, bool *is_new, struct fail *fail) {
  unsigned bridge = if_nametoindex(warden.bridge);
  if (bridge == 0) return fail_errno(fail, "network", "bridge %s", warden.bridge);
  AUTO_CLOSE int fd = nl_open();
  if (fd < 0) return fail_errno(fail, "network", "netlink");
  *outer = look_up(fd, network->veth);
  if (outer->found && outer->veth && outer->master == bridge) return 0;
  if (outer->found) return fail_kind(fail, KIND_EXISTS, "network", "%s is not a port of %s", network->veth, warden.bridge);
  if (plug_in(fd, network, net_ns, bridge, fail) < 0) return -1;
  *outer = look_up(fd, network->veth);
  *is_new = true;
  *undo = fd;
  fd = -1;
  return 0;
}

int net_attach(const struct network *network, int net_ns, uint32_t uid_base, bool fresh, int *undo, struct fail *fail) {
  struct link outer = {0};
  bool is_new = false;
  if (network != NULL && attach_outside(network, net_ns, undo, &outer, &is_new, fail) < 0) return -1;
  if (setns(net_ns, CLONE_NEWNET) < 0) return fail_errno(fail, "setns", "network namespace");
  AUTO_CLOSE int fd = nl_open();
  if (fd < 0) return fail_errno(fail, "network", "netlink");
  if ((fresh || is_new) && set_up_loopback(fd, uid_base, fail) < 0) return -1;
  return attach_inside(fd, network, &outer, is_new, fail);
}

void net_detach(const struct network *network, int *undo) {
  if (*undo >= 0) delete_link(*undo, network->veth);
}

/*
 * Ends connections twice: before the pair is deleted, so that the other sides get a reset, and after, when no new ones can be
 * opened. The first pass is short, so that a sandbox cannot keep its network by having very many sockets.
 */
static int switch_off(int net_ns, struct fail *fail) {
  if (setns(net_ns, CLONE_NEWNET) < 0) return fail_errno(fail, "setns", "network namespace");
  AUTO_CLOSE int fd = nl_open();
  if (fd < 0) return fail_errno(fail, "network", "netlink");
  sockets_end(SOCKETS_TOLD_MS);
  if (attach_inside(fd, NULL, NULL, false, fail) < 0) return -1;
  sockets_end(SOCKETS_ENDED_MS);
  return 0;
}

int net_switch(const struct request *request, struct fail *fail) {
  struct cell cell;
  int undo = -1;
  if (cell_open(request->bind.pid, request->uid_base, &cell, fail) < 0) return -1;
  if (!request->has_network) return switch_off(cell.net_ns, fail);
  int result = net_attach(&request->network, cell.net_ns, request->uid_base, false, &undo, fail);
  if (result < 0) net_detach(&request->network, &undo);
  return result;
}

int net_bridge_create(uint32_t address, uint32_t prefix, struct fail *fail) {
  struct link there = find_link(warden.bridge);
  if (there.found && !there.bridge) return errno = EEXIST, fail_errno(fail, "bridge", "%s is not a bridge", warden.bridge);
  AUTO_CLOSE int fd = nl_open();
  if (fd < 0) return fail_errno(fail, "bridge", "netlink");
  if (!there.found) {
    struct nl nl;
    nl_begin(&nl, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
    nl_put_str(&nl, IFLA_IFNAME, warden.bridge);
    put_hardware_address(&nl, address);
    struct rtattr *info = nl_nest(&nl, IFLA_LINKINFO);
    nl_put_str(&nl, IFLA_INFO_KIND, "bridge");
    nl_unnest(&nl, info);
    if (nl_talk(fd, &nl) < 0) return fail_errno(fail, "bridge", "create %s", warden.bridge);
  }
  if (disable_ipv6(warden.bridge, fail) < 0) return -1;
  if (set_address(fd, if_nametoindex(warden.bridge), address, prefix) < 0) return fail_errno(fail, "bridge", "address");
  return raise_link(fd, warden.bridge) < 0 ? fail_errno(fail, "bridge", "raise %s", warden.bridge) : 0;
}

int net_bridge_delete(struct fail *fail) {
  struct link there = find_link(warden.bridge);
  if (!there.found) return 0;
  if (!there.bridge) return fail_kind(fail, KIND_DENIED, "bridge", "%s is not a bridge", warden.bridge);
  AUTO_CLOSE int fd = nl_open();
  if (fd < 0 || delete_link(fd, warden.bridge) < 0) return fail_errno(fail, "bridge", "delete %s", warden.bridge);
  return 0;
}

/* Call it after the interface is gone, when nothing can be sent any more. */
static int forget(uint32_t address) {
  if (address) conntrack_forget(address);
  return 0;
}

int net_veth_delete(const char *veth, uint32_t address, struct fail *fail) {
  unsigned bridge = if_nametoindex(warden.bridge);
  struct link link = find_link(veth);
  if (!link.found) return forget(address);
  if (bridge == 0 || !link.veth || link.master != bridge) {
    return fail_kind(fail, KIND_DENIED, "veth", "%s is not a port of %s", veth, warden.bridge);
  }
  AUTO_CLOSE int fd = nl_open();
  if (fd < 0) return fail_errno(fail, "veth", "netlink");
  if (delete_link(fd, veth) < 0 && errno != ENODEV) return fail_errno(fail, "veth", "delete %s", veth);
  return forget(address);
}

struct ports {
  struct wire_out *ok;
  uint32_t bridge;
};

static void list_port(const struct nlmsghdr *header, void *context) {
  struct ports *ports = context;
  struct link link = {0};
  read_link(header, &link);
  const struct rtattr *name = nl_link_attr(header, IFLA_IFNAME);
  if (name != NULL && link.veth && link.master == ports->bridge) {
    wire_put_bytes(ports->ok, TAG_OK_name, RTA_DATA(name), strnlen(RTA_DATA(name), RTA_PAYLOAD(name)));
  }
}

int net_veth_list(struct wire_out *ok, struct fail *fail) {
  struct ports ports = {ok, if_nametoindex(warden.bridge)};
  if (ports.bridge == 0) return 0;
  AUTO_CLOSE int fd = nl_open();
  struct nl nl;
  nl_begin(&nl, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
  if (fd < 0 || nl_dump(fd, &nl, list_port, &ports) < 0) return fail_errno(fail, "veth", "list");
  return ok->full ? fail_kind(fail, KIND_SYSTEM, "veth", "too many ports") : 0;
}
