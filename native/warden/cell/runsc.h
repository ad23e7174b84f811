/*
 * runsc: the requests for a runtime that has a kernel of its own (gVisor). It cannot change the root of what runs, so a cell
 * is started with its root in place; in return it can write the memory of all that runs to disk and go on from there.
 */
#ifndef ISLET_WARDEN_RUNSC_H
#define ISLET_WARDEN_RUNSC_H

#include "request.h"

/*
 * Mounts the root at <run>/root and makes the network, both in namespaces of this process alone, and has the runtime start the bundle
 * <cells>/<cell> there; config.json names the network as <cells>/<cell>/net. What it started keeps both; when it ends they are gone. For a process of its own, which must end
 * right after.
 */
int runsc_run(const struct request *request, struct fail *fail);
int runsc_pause(const char *cell, bool paused, struct fail *fail);
/* By a process of the guest's program inside; see native/guest/settle.h. */
int runsc_settle(const struct request *request, struct fail *fail);
int runsc_save(const char *cell, struct fail *fail);

#endif
