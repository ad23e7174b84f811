/* usr: the host's /usr as anybody on the host sees it. */
#ifndef ISLET_WARDEN_USR_H
#define ISLET_WARDEN_USR_H

#include "warden.h"

/*
 * Takes an idmapped clone of /usr and gives a detached mount to use in its place, or -1. Root inside has the ids of root in the clone
 * and could read what on the host only root may. An overlay looks at the files below it with the rights of whoever mounted it, so the
 * clone is wrapped in one that nobody mounted: with ids that no file there has, and without the capabilities that pass over
 * modes. It asks the files themselves at every access: what becomes private later is private then.
 */
int usr_of_anybody(int clone, struct fail *fail);

#endif
