#include "cell/devices.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The devices that the OCI runtime specification requires. */
static const struct {
  const char *name;
  unsigned major, minor;
} NODES[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

int devices_own(struct fail *fail) {
  if (unshare(CLONE_NEWNS) < 0) return fail_errno(fail, "devices", "namespace");
  if (mount("dev", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") < 0) return fail_errno(fail, "devices", "mount");
  AUTO_CLOSE int dev = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (dev < 0) return fail_errno(fail, "devices", "open /dev");
  for (size_t i = 0; i < sizeof NODES / sizeof *NODES; i++) {
    if (mknodat(dev, NODES[i].name, S_IFCHR | 0600, makedev(NODES[i].major, NODES[i].minor)) < 0 ||
        fchmodat(dev, NODES[i].name, 0666, 0) < 0) {
      return fail_errno(fail, "devices", "%s", NODES[i].name);
    }
  }
  return 0;
}
