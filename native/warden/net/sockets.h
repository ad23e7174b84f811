/* sockets: the connections of a network namespace, by sock_diag. */
#ifndef ISLET_WARDEN_SOCKETS_H
#define ISLET_WARDEN_SOCKETS_H

#include "warden.h"

/*
 * Ends the TCP and connected UDP sockets of the network namespace the caller is in whose own address is not the loopback:
 * programs get ECONNABORTED, and while there is a wire the other side a reset. As far as it can be done: a kernel without
 * INET_DIAG_DESTROY cannot, and after limit_ms what is left stays: a sandbox may have very many.
 */
void sockets_end(uint64_t limit_ms);

#endif
