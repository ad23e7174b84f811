/* sockets: the connections of a network namespace, by sock_diag. */
#ifndef ISLET_WARDEN_SOCKETS_H
#define ISLET_WARDEN_SOCKETS_H

#include "warden.h"

/*
 * Ends the TCP and connected UDP sockets of the network namespace the caller is in whose own address is not the loopback:
 * programs get ECONNABORTED, and while there is a wire the other side a reset. A kernel without INET_DIAG_DESTROY cannot,
 * and 0 is returned all the same: without a wire no byte passes.
 */
int sockets_end(struct fail *fail);

#endif
