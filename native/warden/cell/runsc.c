#include "cell/runsc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cell/bind.h"
#include "cell/runtime.h"
#include "cell/userns.h"
#include "mount/cred.h"
#include "mount/overlay.h"
#include "net/net.h"
#include "paths.h"

enum { MAX_ARGUMENTS = 32 };

#define PLACEHOLDER ".islet-placeholder"

/* The mount points of config.json. They are made here so that runsc follows nothing that an image put there. */
static const char *const MOUNT_POINTS[] = {"proc", "dev", "sys", ".islet"};

/* Runs `<runtime> <common flags> <arguments>`; a NULL ends the arguments. */
static int command(const char *bundle, const char *const *arguments, unsigned seconds, struct fail *fail) {
  char log[BUNDLE_BYTES + 16];
  snprintf(log, sizeof log, "%s/runtime.log", bundle);
  /*
   * host-uds: the guest may connect to the sockets in /.islet, but nothing inside may create host sockets. overlay2: files are
   * written to the layer, not to memory. net-disconnect-ok: saving resets connections to the outside instead of failing.
   * oci-seccomp: gVisor's kernel enforces the seccomp profile of config.json.
   */
  const char *argv[MAX_ARGUMENTS] = {warden.runtime,     "--root",           warden.runtime_root,
                                     "--log",            log,                "--log-format",
                                     "json",             "--platform=systrap", "--network=sandbox",
                                     "--host-uds=open",  "--overlay2=none",  "--net-disconnect-ok=true", "--oci-seccomp"};
  unsigned count = 0;
  while (argv[count] != NULL) count++;
  while (*arguments != NULL && count < MAX_ARGUMENTS - 1) argv[count++] = *arguments++;
  return runtime_execute((char *const *)argv, seconds, fail);
}

static int user_namespace(uint32_t uid_base, struct userns *userns, struct fail *fail) {
  char path[48];
  if (userns_make(uid_base, false, userns, fail) < 0) return -1;
  snprintf(path, sizeof path, "/proc/%d/ns/user", (int)userns->holder);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_errno(fail, "userns", "open the namespace");
  userns_leave(userns);
  return fd;
}

/* Leaves this process in a new network namespace that is set up for a cell. */
static int enter_network(const struct bind *bind, int *undo, struct fail *fail) {
  static const char ours[] = "/proc/self/ns/net";
  AUTO_CLOSE int host = open(ours, O_RDONLY | O_CLOEXEC);
  if (host < 0 || unshare(CLONE_NEWNET) < 0) return fail_errno(fail, "network", "namespace");
  AUTO_CLOSE int inner = open(ours, O_RDONLY | O_CLOEXEC);
  if (inner < 0 || setns(host, CLONE_NEWNET) < 0) return fail_errno(fail, "network", "namespace");
  return net_attach(bind->has_network ? &bind->network : NULL, inner, bind->uid_base, true, undo, fail);
}

/*
 * runsc mounts a tmpfs over an empty /tmp, and then files in /tmp would be missing from every clone of the layer. So /tmp gets a
 * placeholder, which the guest removes (settle.c).
 */
static int fill_tmp(int root, struct fail *fail) {
  if (mkdirat(root, "tmp", 0) == 0) {
    if (fchmodat(root, "tmp", 01777, 0) < 0) return fail_errno(fail, "root", "chmod tmp");
  } else if (errno != EEXIST) {
    return fail_errno(fail, "root", "mkdir tmp");
  }
  AUTO_CLOSE int tmp = path_open_dir(root, "tmp");
  if (tmp < 0) return errno == ENOTDIR || errno == ELOOP ? 0 : fail_errno(fail, "root", "open tmp");
  /* mknod and not open: an existing fifo would block open. */
  return mknodat(tmp, PLACEHOLDER, S_IFREG | 0600, 0) < 0 && errno != EEXIST ? fail_errno(fail, "root", "fill tmp") : 0;
}

static int mount_root(const struct bind *bind, bool restore, struct fail *fail) {
  struct userns userns;
  int roots[MAX_TREES];
  AUTO_CLOSE int user_ns = user_namespace(bind->uid_base, &userns, fail);
  if (user_ns < 0 || cred_as(bind->uid_base, fail) < 0) return -1;
  if (bind_mount_trees(bind, user_ns, MOUNT_POINTS, sizeof MOUNT_POINTS / sizeof *MOUNT_POINTS, roots, fail) < 0) return -1;
  if (!restore && fill_tmp(roots[0], fail) < 0) return -1;
  if (mkdirat(warden.scratch_fd, "root", 0755) < 0 && errno != EEXIST) return fail_errno(fail, "root", "mkdir");
  if (unshare(CLONE_NEWNS) < 0) return fail_errno(fail, "root", "namespace");
  /* By path, because the fd from boot belongs to the mount namespace that this process just left. */
  AUTO_CLOSE int run = open(warden.run, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (run < 0) return fail_errno(fail, "root", "%s", warden.run);
  if (bind_attach(roots[0], run, "root", fail) < 0) return -1;
  for (unsigned i = 1; i < bind->trees; i++) {
    if (bind_attach(roots[i], roots[0], bind->tree[i].at + 1, fail) < 0) return -1;
  }
  return 0;
}

/*
 * runsc takes a network namespace for the machine's own if it sees /proc/sys/net/core/rmem_default, and then refuses to configure
 * it. Newer kernels show that file in every namespace, so /proc/sys/net is hidden from runsc.
 */
static int hide_sysctls(struct fail *fail) {
  if (mount("none", "/proc/sys/net", "tmpfs", MS_RDONLY | MS_NODEV | MS_NOSUID | MS_NOEXEC, "size=4k") == 0) return 0;
  return fail_errno(fail, "network", "hide /proc/sys/net");
}

static int start(const struct request *request, const char *bundle, struct fail *fail) {
  char pid_file[BUNDLE_BYTES + 8], memory[BUNDLE_BYTES + 8], net[BUNDLE_BYTES + 8];
  snprintf(net, sizeof net, "%s/net", bundle);
  snprintf(pid_file, sizeof pid_file, "%s/pid", bundle);
  snprintf(memory, sizeof memory, "%s/memory", bundle);
  const char *const fresh[] = {"run", "--detach", "--bundle", bundle, "--pid-file", pid_file, request->name, NULL};
  const char *const saved[] = {"restore",    "--detach", "--bundle",       bundle, "--pid-file",
                               pid_file,     "--image-path", memory, request->name, NULL};
  if (runtime_link(getpid(), "net", net, fail) < 0) return -1;
  int result = command(bundle, request->flag ? saved : fresh, request->flag ? SAVE_SECONDS : START_SECONDS, fail);
  unlink(net);
  return result;
}

int runsc_run(const struct request *request, struct fail *fail) {
  char bundle[BUNDLE_BYTES];
  int undo = -1;
  if (runtime_bundle(request->name, bundle, fail) < 0) return -1;
  if (enter_network(&request->bind, &undo, fail) < 0 || mount_root(&request->bind, request->flag, fail) < 0 || hide_sysctls(fail) < 0 ||
      start(request, bundle, fail) < 0) {
    net_detach(&request->bind.network, &undo);
    return -1;
  }
  return 0;
}

int runsc_pause(const char *cell, bool paused, struct fail *fail) {
  char bundle[BUNDLE_BYTES];
  const char *const arguments[] = {paused ? "pause" : "resume", cell, NULL};
  return runtime_bundle(cell, bundle, fail) < 0 ? -1 : command(bundle, arguments, CONTROL_SECONDS, fail);
}

int runsc_settle(const struct request *request, struct fail *fail) {
  char bundle[BUNDLE_BYTES], memory[24], pids[24];
  const char *arguments[16] = {"exec", "--cap", "CAP_SYS_ADMIN", request->name, "/.islet/guest", "--settle"};
  unsigned count = 6;
  if (runtime_bundle(request->name, bundle, fail) < 0) return -1;
  snprintf(memory, sizeof memory, "%" PRIu64, request->limits.memory_bytes ? request->limits.memory_bytes : (uint64_t)INT64_MAX);
  if (request->limits.pids) snprintf(pids, sizeof pids, "%" PRIu32, request->limits.pids);
  else snprintf(pids, sizeof pids, "max");
  if (request->bind.hostname[0]) arguments[count++] = "--hostname", arguments[count++] = request->bind.hostname;
  if (request->limits.has_memory) arguments[count++] = "--memory", arguments[count++] = memory;
  if (request->limits.has_pids) arguments[count++] = "--pids", arguments[count++] = pids;
  return command(bundle, arguments, SETTLE_SECONDS, fail);
}

int runsc_save(const char *cell, struct fail *fail) {
  char bundle[BUNDLE_BYTES], memory[BUNDLE_BYTES + 8];
  if (runtime_bundle(cell, bundle, fail) < 0) return -1;
  snprintf(memory, sizeof memory, "%s/memory", bundle);
  /* Uncompressed is several times as fast. */
  const char *const arguments[] = {"checkpoint", "--leave-running", "--compression", "none", "--image-path", memory, cell, NULL};
  return command(bundle, arguments, SAVE_SECONDS, fail);
}
