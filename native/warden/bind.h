/* bind: gives a running shell its root. See README.md for the picture. */
#ifndef ISLET_WARDEN_BIND_H
#define ISLET_WARDEN_BIND_H

#include "request.h"

/* For a process of its own: it ends in the shell's namespaces and under other credentials. */
int bind_shell(const struct bind *bind, struct fail *fail);

#endif
