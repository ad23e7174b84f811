/* sockets: the connections of a network namespace, by sock_diag. */
#ifndef ISLET_WARDEN_SOCKETS_H
#define ISLET_WARDEN_SOCKETS_H

#include "warden.h"

/*
 * Ends the TCP and connected UDP sockets of the network namespace the caller is in whose own address is not the loopback:
 * programs get ECONNABORTED, and while there is a wire the other side a reset. As far as it can be done: a kernel without
 * INET_DIAG_DESTROY cannot, and nothing that a sandbox does with its sockets may keep its wire.
 */
void sockets_end(void);

#endif
