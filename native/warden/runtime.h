/* runtime: starts a shell by the OCI runtime. The only other program the warden executes, chosen when it is started. */
#ifndef ISLET_WARDEN_RUNTIME_H
#define ISLET_WARDEN_RUNTIME_H

#include "warden.h"

/*
 * Runs `<runtime> run --detach` on the bundle <shells>/<shell>, whose config.json the server wrote; the pid is then in
 * <shells>/<shell>/pid, and what went wrong in runtime.log beside it. Returns when the runtime has ended.
 */
int runtime_start(const char *shell, struct fail *fail);

#endif
