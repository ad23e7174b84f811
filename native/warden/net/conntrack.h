/* conntrack: what the machine's connection tracking remembers of a sandbox. */
#ifndef ISLET_WARDEN_CONNTRACK_H
#define ISLET_WARDEN_CONNTRACK_H

#include <stdint.h>

/*
 * Drops every connection that `address` (in network order) began: they count against whoever has that address next, and those of a
 * kernel that was killed (gVisor's) nobody ends. A kernel before 6.8 cannot do that; there they end by their time-outs.
 */
void conntrack_forget(uint32_t address);

#endif
