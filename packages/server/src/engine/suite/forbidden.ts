// System calls that a sandbox must not make. The arguments make each call harmless: if it is allowed it fails for another reason
// (EINVAL, EFAULT, EBADF), which the check tells from a refusal.

/** Name to [x86-64 number, arguments]. */
export const FORBIDDEN: Record<string, readonly number[]> = {
  mount: [165, 0, 0, 0, 0, 0],
  umount2: [166, 0, 0],
  pivot_root: [155, 0, 0],
  open_tree: [428, -1, 0, 0],
  move_mount: [429, -1, 0, -1, 0, 0],
  fsopen: [430, 0, 0],
  mount_setattr: [442, -1, 0, 0, 0, 0],
  unshare_user: [272, 0x10000000],
  unshare_net: [272, 0x40000000],
  unshare_mount: [272, 0x00020000],
  setns: [308, -1, 0],
  // CLONE_NEWUSER with an exit signal that is not valid, so that no child is made.
  clone_newuser: [56, 0x10000000 | 0xff, 0, 0, 0, 0],
  clone3: [435, 0, 0],
  bpf: [321, -1, 0, 0],
  perf_event_open: [298, 0, 0, -1, -1, 0],
  kexec_load: [246, 0, 0, 0, 0],
  kexec_file_load: [320, -1, -1, 0, 0, 0],
  init_module: [175, 0, 0, 0],
  finit_module: [313, -1, 0, 0],
  delete_module: [176, 0, 0],
  add_key: [248, 0, 0, 0, 0, 0],
  request_key: [249, 0, 0, 0, 0],
  keyctl: [250, -1, 0, 0, 0, 0],
  syslog: [103, -1, 0, 0],
  io_uring_setup: [425, 0, 0],
  io_setup: [206, 0, 0],
  userfaultfd: [323, -1],
  swapon: [167, 0, 0],
  swapoff: [168, 0],
  // Wrong magic numbers: EINVAL where it is allowed.
  reboot: [169, 0, 0, 0, 0],
  settimeofday: [164, 0, 0],
  clock_settime: [227, 0, 0],
  acct: [163, 0],
  quotactl: [179, 0, 0, 0, 0],
  iopl: [172, 9],
  ioperm: [173, 0, 0, 9],
  open_by_handle_at: [304, -1, 0, 0],
  fanotify_init: [300, -1, 0],
  lookup_dcookie: [212, 0, 0, 0],
  // AF_PACKET, AF_ALG, AF_VSOCK, and raw IPv4.
  socket_packet: [41, 17, 3, 0],
  socket_alg: [41, 38, 5, 0],
  socket_vsock: [41, 40, 1, 0],
  socket_netlink_user: [41, 16, 3, 2],
  socket_raw: [41, 2, 3, 1],
}

/** A Python program that makes each call and prints the names of the errors. */
export function forbiddenProgram(): string {
  return `
import ctypes, errno, json
libc = ctypes.CDLL(None, use_errno=True)
results = {}
for name, (number, *args) in json.loads('''${JSON.stringify(FORBIDDEN)}''').items():
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in args])
    results[name] = errno.errorcode.get(ctypes.get_errno(), 'no error') if result < 0 else 'allowed'
print(json.dumps(results))
`
}
