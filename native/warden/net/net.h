/* net: the bridge, and a sandbox's end of it, by rtnetlink. */
#ifndef ISLET_WARDEN_NET_H
#define ISLET_WARDEN_NET_H

#include "request.h"

/*
 * With a network, a veth pair whose inner end is eth0 and whose outer end is an isolated port of our bridge; one that the cell
 * has already is left as it is. Without, none: one that was made ahead is taken away. In a fresh namespace also the loopback
 * and the sysctls. Ends in the cell's network namespace (setns). *undo is a socket for net_detach, or -1 when nothing was made.
 */
int net_attach(const struct network *network, int net_ns, uint32_t uid_base, bool fresh, int *undo, struct fail *fail);
void net_detach(const struct network *network, int *undo);

/* CELL_NETWORK: what net_attach does, for a cell in use. What loses its network loses its connections with it. */
int net_switch(const struct request *request, struct fail *fail);

int net_bridge_create(uint32_t address, uint32_t prefix, struct fail *fail);
int net_bridge_delete(struct fail *fail);
/* Refuses what is not a port of our bridge; fine when there is no such interface. */
/* With `address` (0: none), its connections are forgotten. */
int net_veth_delete(const char *veth, uint32_t address, struct fail *fail);
int net_veth_list(struct wire_out *ok, struct fail *fail);

#endif
