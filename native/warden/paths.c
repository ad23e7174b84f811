#include "paths.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int path_open(int at, const char *name, int flags) {
  struct open_how how = {
      .flags = (uint64_t)(flags | O_CLOEXEC),
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
  };
  return (int)syscall(SYS_openat2, at, name, &how, sizeof how);
}

int path_open_dir(int at, const char *name) {
  return path_open(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

int path_layer(const char *layer, struct fail *fail) {
  int fd = path_open_dir(warden.layers_fd, layer);
  if (fd < 0) return fail_errno(fail, "layer", "layer %s", layer);
  return fd;
}

void path_work_name(char out[MAX_NAME + 6], const char *tree) {
  snprintf(out, MAX_NAME + 6, "%.63s.work", tree);
}

void path_temp_name(char out[48]) {
  static unsigned count;
  snprintf(out, 48, ".tmp-%d-%u", getpid(), count++);
}

bool path_is_temp(const char *name) {
  return strncmp(name, ".tmp-", 5) == 0;
}
