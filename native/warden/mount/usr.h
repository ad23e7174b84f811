/* usr: the host's /usr with the permissions of an unprivileged user of the host. */
#pragma once

#include "warden.h"

/*
 * Wraps an idmapped clone of /usr in a detached mount to use in its place; -1 on failure. In the plain clone, root inside has the
 * ids of root and could read files that only root may read on the host. An overlay accesses the files below it with the
 * credentials of its mounter, so the clone is wrapped in an overlay mounted by `nobody`: with ids that no file has and without
 * the capabilities that override modes. Permissions are checked at every access, so a file that becomes private later is private.
 */
int usr_of_anybody(int clone, struct fail *fail);
