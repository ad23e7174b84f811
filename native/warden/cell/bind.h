/* bind: gives a running cell its root. See README.md for the picture. */
#ifndef ISLET_WARDEN_BIND_H
#define ISLET_WARDEN_BIND_H

#include "request.h"

/* Mounts the overlay of every tree, detached, into `roots`, and makes the mount points `points` and of the other trees in the first. */
int bind_mount_trees(const struct bind *bind, int user_ns, const char *const *points, unsigned count, int *roots, struct fail *fail);
/* A detached mount at <to>/<name>. */
int bind_attach(int mount_fd, int to, const char *name, struct fail *fail);

/* For a process of its own, which must end right after: it is left in the cell's namespaces, under other
 * credentials, and holding every fd and detached mount it needed. `etc`: whether its files of /etc are there. */
int bind_cell(const struct bind *bind, bool *etc, struct fail *fail);

#endif
