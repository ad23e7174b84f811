/*
 * runsc: requests for gVisor's runtime. It cannot change the root of a running cell, so a cell is started with its root in
 * place. In return it can save the memory of a cell to disk and restore it.
 */
#pragma once

#include "request.h"

/*
 * Mounts the root at <run>/root and makes the network, both in namespaces of this process alone, and has the runtime start the
 * bundle <cells>/<cell> there; config.json names the network namespace as <cells>/<cell>/net. The started cell keeps both
 * namespaces alive. Call it in a process of its own that exits right after.
 */
int runsc_run(const struct request *request, struct fail *fail);
int runsc_pause(const char *cell, bool paused, struct fail *fail);
/* Runs the guest's program inside; see native/guest/settle.h. */
int runsc_settle(const struct request *request, struct fail *fail);
int runsc_save(const char *cell, struct fail *fail);
