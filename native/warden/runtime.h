/* runtime: starts a shell by the OCI runtime. The only other program the warden executes, chosen when it is started. */
#ifndef ISLET_WARDEN_RUNTIME_H
#define ISLET_WARDEN_RUNTIME_H

#include "warden.h"

/*
 * Runs `<runtime> run --detach` on the bundle <shells>/<shell>, whose config.json the server wrote; the pid is then in
 * <shells>/<shell>/pid, and what went wrong in runtime.log beside it. Returns when the runtime has ended. Its user
 * namespace is there before (userns.h), and config.json names it as <shells>/<shell>/user, a link that is there meanwhile.
 */
int runtime_start(const char *shell, uint32_t uid_base, struct fail *fail);

#endif
