#include "mount/cred.h"

#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The capabilities in `mask` that are permitted become the effective ones; -1 with errno. */
static int set_effective(uint64_t mask) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) < 0) return -1;
  data[0].effective = data[0].permitted & (uint32_t)mask;
  data[1].effective = data[1].permitted & (uint32_t)(mask >> 32);
  return (int)syscall(SYS_capset, &header, data);
}

int cred_raise_all(void) {
  return set_effective(UINT64_MAX);
}

/* Raised before, because changing ids needs capabilities, and after, because it drops some. */
int cred_as(uint32_t id, struct fail *fail) {
  if (cred_raise_all() < 0) return fail_errno(fail, "credentials", "raise capabilities");
  setfsgid(id);
  setfsuid(id);
  return cred_raise_all() < 0 ? fail_errno(fail, "credentials", "raise capabilities") : 0;
}

int cred_with_only(uint32_t id, int capability, struct fail *fail) {
  setfsgid(id);
  setfsuid(id);
  return set_effective((uint64_t)1 << capability) < 0 ? fail_errno(fail, "credentials", "drop capabilities") : 0;
}
