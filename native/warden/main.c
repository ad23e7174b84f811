/*
 * warden: everything in Islet that needs root, in one small program. The server starts it once and sends it requests over a
 * socket; README.md lists them. `warden --version` prints the generation of the protocol. Boot may fail with a message and
 * exit code 1; after boot the warden exits only when its socket closes.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cell/runtime.h"
#include "cgroup/cgroup.h"
#include "layer/layer.h"
#include "loop.h"
#include "message.h"
#include "mount/overlay.h"
#include "mount/private.h"
#include "mount/release.h"
#include "paths.h"

enum { LOCK_ATTEMPTS = 3000, LOCK_PAUSE_US = 10000 };

struct warden warden = {.layers_fd = -1, .images_fd = -1, .usr_fd = -1, .scratch_fd = -1};

struct arguments {
  const char *data, *run, *images, *method;
  int fd;
};

static _Noreturn void die(const char *what) {
  fprintf(stderr, "warden: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
  exit(1);
}

static void die_of(const struct fail *fail) {
  errno = fail->err;
  die(fail->message);
}

static uint32_t number(const char *text) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (errno || *end || end == text || value > UINT32_MAX) errno = 0, die("an argument is not a number");
  return (uint32_t)value;
}

static void name_into(char *out, size_t size, const char *text) {
  if (strlen(text) >= size || text[0] == 0 || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(text)) {
    errno = 0;
    die("a bridge or cgroup name is not valid");
  }
  snprintf(out, size, "%s", text);
}

static struct arguments parse(int argc, char **argv) {
  static const struct option options[] = {
      {"data", 1, NULL, 'd'},      {"run", 1, NULL, 'r'},       {"bridge", 1, NULL, 'b'}, {"cgroup", 1, NULL, 'c'},
      {"uid-start", 1, NULL, 's'}, {"uid-count", 1, NULL, 'n'}, {"fd", 1, NULL, 'f'},     {"images", 1, NULL, 'i'},
      {"method", 1, NULL, 'm'},    {"portable", 0, NULL, 'p'},
      {"cells", 1, NULL, 'h'},    {"runtime", 1, NULL, 'x'},   {"runtime-root", 1, NULL, 'o'},  {0}};
  struct arguments args = {.method = "auto", .fd = 3};
  int option;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    switch (option) {
      case 'd': args.data = optarg; break;
      case 'r': args.run = optarg; break;
      case 'i': args.images = optarg; break;
      case 'm': args.method = optarg; break;
      case 'p': warden.portable = true; break;
      case 'h': warden.cells = optarg; break;
      case 'x': warden.runtime = optarg; break;
      case 'o': warden.runtime_root = optarg; break;
      case 'b': name_into(warden.bridge, sizeof warden.bridge, optarg); break;
      case 'c': name_into(warden.cgroup, sizeof warden.cgroup, optarg); break;
      case 's': warden.uid_start = number(optarg); break;
      case 'n': warden.uid_count = number(optarg); break;
      case 'f': args.fd = (int)number(optarg); break;
      default: exit(1);
    }
  }
  errno = 0;
  if (!args.data || !args.run || !warden.bridge[0] || !warden.cgroup[0] || !warden.uid_start || !warden.uid_count) {
    die("--data, --run, --bridge, --cgroup, --uid-start and --uid-count are needed");
  }
  if (warden.runtime != NULL && (warden.runtime[0] != '/' || warden.cells == NULL || warden.runtime_root == NULL)) {
    die("--runtime is an absolute path and comes with --cells and --runtime-root");
  }
  if ((uint64_t)warden.uid_start + (uint64_t)warden.uid_count * UIDS_PER_SANDBOX > UINT32_MAX) die("the uid range is too large");
  return args;
}

static const char *real_path(const char *path, char out[PATH_MAX]) {
  if (realpath(path, out) == NULL) die(path);
  return out;
}

/* Enters a mount namespace of our own, with a private scratch tmpfs. */
static void go_private(const struct arguments *args) {
  static char paths[4][PATH_MAX];
  const char *run = real_path(args->run, paths[0]), *data = real_path(args->data, paths[1]);
  const char *images = args->images ? real_path(args->images, paths[2]) : data;
  const char *const keep[] = {run, data, images, real_path("/usr", paths[3]), "/proc", "/sys", "/dev", NULL};
  if (private_enter(keep) < 0) die("mount namespace");
  if (mount("warden", run, "tmpfs", MS_NODEV | MS_NOSUID | MS_NOEXEC, "mode=711,size=4m") < 0) die("scratch");
  if (mount(NULL, run, NULL, MS_PRIVATE, NULL) < 0) die("scratch");
  warden.run = run;
  warden.scratch_fd = open(run, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (warden.scratch_fd < 0) die(run);
  snprintf(warden.scratch, sizeof warden.scratch, "/proc/self/fd/%d", warden.scratch_fd);
}

static int open_dir(const char *path) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) die(path);
  return fd;
}

static int open_below(int data, const char *name) {
  if (mkdirat(data, name, 0700) < 0 && errno != EEXIST) die(name);
  int fd = path_open_dir(data, name);
  if (fd < 0) die(name);
  return fd;
}

/* One warden per pool. The previous warden may still be shutting down: a killed worker that waits for the disk dies late. */
static void lock_pool(int pool) {
  for (int i = 0; flock(pool, LOCK_EX | LOCK_NB) < 0; i++) {
    if (errno != EWOULDBLOCK || i == LOCK_ATTEMPTS) die("another warden uses this pool");
    usleep(LOCK_PAUSE_US);
  }
}

static void boot(const struct arguments *args) {
  struct fail fail;
  umask(0);
  signal(SIGPIPE, SIG_IGN);
  /* Ctrl-C and a service manager's stop reach the warden, too, but the server needs it during its own shutdown. */
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  if (fcntl(args->fd, F_SETFD, FD_CLOEXEC) < 0) die("--fd");
  int data = open_dir(args->data);
  int pool = open_below(data, "pool");
  warden.images_fd = args->images ? open_dir(args->images) : open_below(data, "images");
  warden.usr_fd = open_dir("/usr");
  close(data);
  lock_pool(pool);
  if (layer_open(pool, args->method, &fail) < 0) die_of(&fail);
  if (cgroup_open(&fail) < 0) die_of(&fail);
  runtime_boot();
  overlay_probe();
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--version") == 0) return printf("warden %d\n", GENERATION) < 0;
  struct arguments args = parse(argc, argv);
  go_private(&args);
  boot(&args);
  release_open();
  loop_run(args.fd);
  release_close();
  return 0;
}
