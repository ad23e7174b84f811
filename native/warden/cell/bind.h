/* bind: gives a running cell its root. See README.md for the picture. */
#pragma once

#include "request.h"

/* Mounts the overlay of every tree, detached, and makes the mount points `points` and those of the other trees in the first. */
int bind_mount_trees(const struct bind *bind, int user_ns, const char *const *points, unsigned count, int *roots, struct fail *fail);
/* Attaches a detached mount at <to>/<name>. */
int bind_attach(int mount_fd, int to, const char *name, struct fail *fail);

/* Call it in a process of its own that exits right after: it stays in the cell's namespaces, with other credentials, and
 * keeps every fd and detached mount it needed. *etc tells whether the files of /etc were written. */
int bind_cell(const struct bind *bind, bool *etc, struct fail *fail);
