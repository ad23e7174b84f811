/* runtime: starts a cell by the OCI runtime. The only other program the warden executes, chosen when it is started. */
#ifndef ISLET_WARDEN_RUNTIME_H
#define ISLET_WARDEN_RUNTIME_H

#include <sys/types.h>

#include "request.h"

/* After the cgroups were opened: what this runtime must not find. */
void runtime_boot(void);

/*
 * Runs `<runtime> run --detach` on the bundle <cells>/<cell>, whose config.json the server wrote; the pid is then in
 * <cells>/<cell>/pid, and what went wrong in runtime.log beside it. Returns when the runtime has ended. Its user
 * namespace is there before (userns.h), and config.json names it as <cells>/<cell>/user, a link that is there meanwhile.
 * In the background: the start gives way to all else, and what was started has an ordinary priority again.
 */
int runtime_start(const struct request *request, struct fail *fail);

enum { BUNDLE_BYTES = 512 };

/* <cells>/<cell>; fails when this warden has no runtime. */
int runtime_bundle(const char *cell, char bundle[BUNDLE_BYTES], struct fail *fail);
/* A symlink to a namespace of a process, for config.json to name; the caller removes it. */
int runtime_link(pid_t pid, const char *kind, const char *path, struct fail *fail);
/*
 * How long a runtime may take. It talks with what is inside, which may be hostile and never answer; whoever waits for that keeps a
 * worker from all other sandboxes.
 */
enum { START_SECONDS = 120, CONTROL_SECONDS = 30, SETTLE_SECONDS = 10, SAVE_SECONDS = 900 };

/* Runs the program argv[0] to its end, or kills it after so long: no input, no output, nothing open, and it dies with this process. */
int runtime_execute(char *const *argv, unsigned seconds, struct fail *fail);

#endif
