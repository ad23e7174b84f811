/* conntrack: a sandbox's entries in the machine's connection tracking. */
#pragma once

#include <stdint.h>

/*
 * Drops the entries of connections that `address` (in network order) opened. Otherwise they would count against the next
 * sandbox with that address, and a killed gVisor kernel never ends its connections. Kernels before 6.8 do not support it;
 * there the entries time out.
 */
void conntrack_forget(uint32_t address);
