/* bind: gives a running shell its root. See README.md for the picture. */
#ifndef ISLET_WARDEN_BIND_H
#define ISLET_WARDEN_BIND_H

#include "request.h"

/* For a process of its own, which must end right after: it is left in the shell's namespaces, under other
 * credentials, and holding every fd and detached mount it needed. */
int bind_shell(const struct bind *bind, struct fail *fail);

#endif
