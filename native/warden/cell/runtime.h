/* runtime: starts a cell with the OCI runtime, the only other program that the warden executes (--runtime). */
#pragma once

#include <sys/types.h>

#include "request.h"

/* Boot, after cgroup_open: prepares null devices, and hides the v2 hierarchy from crun. */
void runtime_boot(void);

/*
 * Runs `<runtime> run --detach` on the bundle <cells>/<cell>, whose config.json the server wrote. The pid is then in
 * <cells>/<cell>/pid, errors are in runtime.log beside it. Returns when the runtime has exited. The user namespace is made
 * before (userns.h); config.json names it as <cells>/<cell>/user, a link that exists during the start.
 * With `background` the start runs at the lowest priority; the started cell gets the normal priority again.
 */
int runtime_start(const struct request *request, struct fail *fail);

enum { BUNDLE_BYTES = 512 };

/* <cells>/<cell>; fails when this warden has no runtime. */
int runtime_bundle(const char *cell, char bundle[BUNDLE_BYTES], struct fail *fail);
/* A symlink to a namespace of a process, for config.json to name; the caller removes it. */
int runtime_link(pid_t pid, const char *kind, const char *path, struct fail *fail);
/*
 * Deadlines for a runtime. It talks to the inside, which may be hostile and never answer; waiting would block a worker that
 * other sandboxes need.
 */
enum { START_SECONDS = 120, CONTROL_SECONDS = 30, SETTLE_SECONDS = 10, SAVE_SECONDS = 900 };

/* Runs argv[0] until it exits, or kills it after `seconds`. It has null devices as stdio, no other fds, and dies with this process. */
int runtime_execute(char *const *argv, unsigned seconds, struct fail *fail);
