/* sockets: the connections of a network namespace, by sock_diag. */
#pragma once

#include "warden.h"

/*
 * Ends the TCP and connected UDP sockets in the caller's network namespace, except on the loopback: programs get ECONNABORTED,
 * and the other side gets a reset if the interface still exists. Best effort: a kernel without INET_DIAG_DESTROY cannot do it,
 * and after limit_ms the remaining sockets stay, because a sandbox may have very many.
 */
void sockets_end(uint64_t limit_ms);
