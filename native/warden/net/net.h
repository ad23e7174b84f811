/* net: the bridge and the sandboxes' veth pairs, by rtnetlink. */
#pragma once

#include "request.h"

/*
 * With a network: makes a veth pair whose inner end is eth0 and whose outer end is an isolated port of our bridge; keeps a pair
 * that the cell has already. Without (NULL): deletes a pair that was made ahead. In a fresh namespace it also sets up the
 * loopback and the sysctls. Leaves this process in the cell's network namespace (setns). *undo is a socket for net_detach, or
 * -1 if no pair was made.
 */
int net_attach(const struct network *network, int net_ns, uint32_t uid_base, bool fresh, int *undo, struct fail *fail);
void net_detach(const struct network *network, int *undo);

/* CELL_NETWORK: net_attach for a cell in use. Taking the network away ends its connections. */
int net_switch(const struct request *request, struct fail *fail);

int net_bridge_create(uint32_t address, uint32_t prefix, struct fail *fail);
int net_bridge_delete(struct fail *fail);
/* Refuses an interface that is not a port of our bridge; succeeds if there is no such interface. Also forgets the tracked
 * connections of `address` (0: none). */
int net_veth_delete(const char *veth, uint32_t address, struct fail *fail);
int net_veth_list(struct wire_out *ok, struct fail *fail);
