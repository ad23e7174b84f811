/*
 * Why in the warden and not in the server: forking the server's hundred megabytes takes longer than most of what the runtime
 * does.
 */
#include "cell/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cell/cell.h"
#include "cell/devices.h"
#include "cell/userns.h"
#include "net/net.h"

/* Not SCHED_IDLE: a start that holds a kernel lock must make progress on a busy machine. */
enum { LOWEST_PRIORITY = 19 };

#define UNIFIED "/sys/fs/cgroup/unified"

static bool is_crun;
/* Whether an empty directory is mounted at UNIFIED, for crun. */
static bool hides;
/* Detached mounts: crun's program, read-only, and a tmpfs for null devices. */
static int crun = -1, nulls = -1;

static int mount_nulls(void) {
  AUTO_CLOSE int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
  if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) return -1;
  return fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

/* Repairs the owner of the machine's /dev/null, which a runtime started by other software may have given to a sandbox (see open_null). */
static void keep_null(void) {
  struct stat stat;
  AUTO_CLOSE int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &stat) < 0 || stat.st_uid < warden.uid_start) return;
  if ((stat.st_uid - warden.uid_start) / UIDS_PER_SANDBOX >= warden.uid_count) return;
  if (fchown(fd, 0, 0) == 0) fchmod(fd, 0666);
}

/*
 * crun refuses a machine with cgroup v1 and a v2 hierarchy that has controllers of its own. Our limits do not use that v2
 * hierarchy, so crun sees an empty tmpfs in its place, where it makes plain directories. This happens in our own mount namespace,
 * and hierarchies that are open already stay usable. A tmpfs, because the directory below may be read-only (systemd).
 *
 * So that a sandbox cannot write to crun's program through /proc/<pid>/exe, crun normally mounts itself read-only and executes
 * itself again. We do that once here, and `execute` tells crun so.
 */
void runtime_boot(void) {
  keep_null();
  nulls = mount_nulls();
  const char *name = warden.runtime == NULL ? NULL : strrchr(warden.runtime, '/');
  is_crun = name != NULL && strcmp(name, "/crun") == 0;
  if (!is_crun) return;
  hides = umount2(UNIFIED, MNT_DETACH) == 0 && mount("none", UNIFIED, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
  crun = open_tree(AT_FDCWD, warden.runtime, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (crun >= 0 && mount_setattr(crun, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0) close_fd(&crun);
}

/*
 * The runtime's stdin, stdout and stderr. crun gives them to the sandbox's root (fchown), which could then chmod the machine's
 * /dev/null. So each start gets its own null device without a name.
 */
static int open_null(void) {
  char name[16];
  if (nulls < 0 && !is_crun) return open("/dev/null", O_RDWR);
  snprintf(name, sizeof name, "%d", (int)getpid());
  unlinkat(nulls, name, 0);
  if (mknodat(nulls, name, S_IFCHR | 0600, makedev(1, 3)) < 0) return -1;
  int fd = openat(nulls, name, O_RDWR);
  unlinkat(nulls, name, 0);
  return fd;
}

static _Noreturn void execute(char *const *argv) {
  static char *const env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
  static char *const read_only_env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                        "_LIBCONTAINER_CLONED_BINARY=1", NULL};
  static const int ignored[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP};
  /* An ignored signal stays ignored across exec, down to the first process of the sandbox. */
  for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) signal(ignored[i], SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int null = open_null();
  for (int fd = 0; fd < 3; fd++) {
    if (null < 0 || dup2(null, fd) < 0) _exit(127);
  }
  umask(022);
  bool read_only = crun >= 0 && (crun == 3 || dup3(crun, 3, O_CLOEXEC) == 3);
  syscall(SYS_close_range, read_only ? 4u : 3u, ~0u, 0u);
  if (read_only) execveat(3, "", argv, read_only_env, AT_EMPTY_PATH);
  else execve(argv[0], argv, env);
  _exit(127);
}

/* Whether the process ended within `seconds`; else kills it. The caller waits for it in both cases. */
static bool ended_within(pid_t pid, unsigned seconds) {
  AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0u);
  struct pollfd ended = {.fd = fd, .events = POLLIN};
  uint64_t deadline = now_us() + seconds * (uint64_t)1000000, now;
  while (fd >= 0 && (now = now_us()) < deadline) {
    int count = poll(&ended, 1, (int)((deadline - now) / 1000 + 1));
    if (count > 0 || (count < 0 && errno != EINTR)) return true;
  }
  if (fd < 0) return true;
  kill(pid, SIGKILL);
  return false;
}

int runtime_execute(char *const *argv, unsigned seconds, struct fail *fail) {
  pid_t pid = fork();
  if (pid == 0) execute(argv);
  if (pid < 0) return fail_errno(fail, "runtime", "fork");
  bool in_time = ended_within(pid, seconds);
  int status;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return fail_errno(fail, "runtime", "wait");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  if (!in_time) return fail_kind(fail, KIND_BUSY, "runtime", "the runtime did not end within %u s", seconds);
  return fail_kind(fail, KIND_SYSTEM, "runtime", "the runtime ended with %s %d", WIFEXITED(status) ? "code" : "signal",
                   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int runtime_bundle(const char *cell, char bundle[BUNDLE_BYTES], struct fail *fail) {
  if (warden.runtime == NULL) return fail_kind(fail, KIND_UNSUPPORTED, "runtime", "this warden was started without a runtime");
  if (snprintf(bundle, BUNDLE_BYTES, "%s/%s", warden.cells, cell) < BUNDLE_BYTES) return 0;
  return fail_kind(fail, KIND_BAD_REQUEST, "runtime", "the path of the cell is too long");
}

int runtime_link(pid_t pid, const char *kind, const char *path, struct fail *fail) {
  char target[48];
  snprintf(target, sizeof target, "/proc/%d/ns/%s", (int)pid, kind);
  unlink(path); /* an interrupted start may have left it */
  return symlink(target, path) < 0 ? fail_errno(fail, "runtime", "link the %s namespace", kind) : 0;
}

/* Removes the directory that crun made in place of a cgroup; one per cell would add up. */
static void remove_hidden(const char *cell) {
  char group[sizeof UNIFIED + 2 * MAX_NAME + 2], members[sizeof group + sizeof "/cgroup.procs"];
  if (!hides) return;
  snprintf(group, sizeof group, "%s/%s/%s", UNIFIED, warden.cgroup, cell);
  snprintf(members, sizeof members, "%s/cgroup.procs", group);
  unlink(members);
  rmdir(group);
}

/* Opens the cell whose pid the runtime wrote. cell_open checks that the pid was not reused. */
static int open_started(const char *pid_file, uint32_t uid_base, uint32_t *pid, struct cell *cell, struct fail *fail) {
  char text[16];
  int fd = open(pid_file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (io_take_text(fd, text, sizeof text) <= 0) return fail_errno(fail, "runtime", "%s", pid_file);
  *pid = (uint32_t)strtoul(text, NULL, 10);
  return cell_open(*pid, uid_base, cell, fail);
}

/* Gives the started cell the normal priority and prepares its network, so that BIND has less to do. */
static int complete(const struct request *request, const char *pid_file, struct fail *fail) {
  struct cell cell;
  uint32_t pid = 0;
  int undo = -1;
  const struct network *network = request->has_network ? &request->network : NULL;
  if (open_started(pid_file, request->uid_base, &pid, &cell, fail) < 0) return -1;
  if (request->flag && setpriority(PRIO_PROCESS, pid, 0) < 0) return fail_errno(fail, "priority", "process %u", pid);
  /* This process, too: it takes the lock for making pairs (net.c), and at low priority busy sandboxes could block its holder. */
  if (request->flag) setpriority(PRIO_PROCESS, 0, 0);
  if (net_attach(network, cell.net_ns, request->uid_base, true, &undo, fail) == 0) return 0;
  net_detach(&request->network, &undo);
  return -1;
}

int runtime_start(const struct request *request, struct fail *fail) {
  char bundle[BUNDLE_BYTES], pid_file[BUNDLE_BYTES + 8], log[BUNDLE_BYTES + 16], user[BUNDLE_BYTES + 8];
  if (runtime_bundle(request->name, bundle, fail) < 0) return -1;
  snprintf(pid_file, sizeof pid_file, "%s/pid", bundle);
  snprintf(log, sizeof log, "%s/runtime.log", bundle);
  char *const argv[] = {(char *)warden.runtime, "--root", (char *)warden.runtime_root, "--log", log, "--log-format", "json", "run",
                        "--detach", "--bundle", bundle, "--pid-file", pid_file, (char *)request->name, NULL};
  snprintf(user, sizeof user, "%s/user", bundle);
  struct userns userns;
  if (userns_make(request->uid_base, true, &userns, fail) < 0) return -1;
  /* This process serves only this request; the runtime inherits the priority. */
  if (request->flag) setpriority(PRIO_PROCESS, 0, LOWEST_PRIORITY);
  int result = runtime_link(userns.holder, "user", user, fail);
  if (result == 0) result = devices_own(fail);
  if (result == 0) result = runtime_execute(argv, START_SECONDS, fail);
  remove_hidden(request->name);
  unlink(user);
  userns_leave(&userns);
  return result < 0 ? -1 : complete(request, pid_file, fail);
}
