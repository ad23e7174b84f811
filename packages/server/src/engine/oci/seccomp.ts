// The system calls a sandbox may make. An allow-list similar to the defaults of container engines: enough for shells,
// compilers, package managers, sudo, debuggers and language runtimes. Other calls fail with EPERM; calls that the runtime does
// not know fail with ENOSYS, so that programs fall back. Left out on purpose: mounting, namespaces, modules, kexec, bpf, perf,
// keyrings, io_uring, userfaultfd, clocks, swap, quota, the kernel log, and AIO contexts, which the kernel counts for the whole
// machine.

interface SeccompProfile {
  defaultAction: string
  defaultErrnoRet: number
  architectures: string[]
  syscalls: SeccompRule[]
}

interface SeccompRule {
  names: string[]
  action: string
  errnoRet?: number
  args?: { index: number; value: number; valueTwo?: number; op: string }[]
}

const EPERM = 1
const ENOSYS = 38

// Only the native table: 32-bit entry points have their own, less tested numbers and multiplexers.
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = {
  x64: 'SCMP_ARCH_X86_64',
  arm64: 'SCMP_ARCH_AARCH64',
  riscv64: 'SCMP_ARCH_RISCV64',
}

const ALLOWED: Record<string, string> = {
  files: `access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64
    fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fremovexattr
    fsetxattr fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64 getxattr getxattrat ioctl lchown
    lgetxattr link linkat listxattr listxattrat llistxattr lremovexattr lseek lsetxattr lstat mkdir mkdirat mknod
    mknodat name_to_handle_at newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read
    readahead readlink readlinkat readv removexattr removexattrat rename renameat renameat2 rmdir sendfile setxattr
    setxattrat splice stat statfs statx symlink symlinkat sync sync_file_range syncfs tee truncate umask unlink
    unlinkat utime utimensat utimes write writev chroot cachestat`,
  watching: 'inotify_add_watch inotify_init inotify_init1 inotify_rm_watch fanotify_mark',
  memory: `brk get_mempolicy madvise mbind membarrier memfd_create memfd_secret mincore mlock mlock2 mlockall mmap
    mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages
    set_mempolicy set_mempolicy_home_node map_shadow_stack`,
  processes: `execve execveat exit exit_group fork vfork wait4 waitid kill tkill tgkill getpid getppid gettid getpgid
    getpgrp getsid setpgid setsid prctl arch_prctl set_tid_address set_robust_list get_robust_list rseq futex
    futex_wait futex_wake futex_requeue futex_waitv pidfd_open pidfd_send_signal pidfd_getfd process_mrelease
    process_vm_readv process_vm_writev ptrace kcmp process_madvise restart_syscall get_thread_area set_thread_area
    modify_ldt getcpu`,
  users: `getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid
    setresgid setgroups setfsuid setfsgid capget capset`,
  limits: `getrlimit setrlimit prlimit64 getrusage getpriority setpriority ioprio_get ioprio_set sched_getaffinity
    sched_setaffinity sched_getattr sched_setattr sched_getparam sched_setparam sched_getscheduler
    sched_setscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_yield`,
  signals: `rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
    rt_tgsigqueueinfo sigaltstack signalfd signalfd4 pause alarm`,
  time: `clock_getres clock_gettime clock_nanosleep gettimeofday nanosleep time times getitimer setitimer timer_create
    timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime
    adjtimex clock_adjtime`,
  waiting: `epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old
    eventfd eventfd2 poll ppoll select pselect6 pipe pipe2`,
  sockets: `accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg
    sendmsg sendto setsockopt shutdown socketpair`,
  ipc: `mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd semctl semget
    semop semtimedop shmat shmctl shmdt shmget`,
  machine: 'getrandom sysinfo uname seccomp landlock_add_rule landlock_create_ruleset landlock_restrict_self',
}

// Fail with ENOSYS, as if the kernel did not have them, so that programs fall back. The flags of clone3 are behind a pointer that
// a filter cannot read; libc then uses clone. AIO contexts are counted machine-wide (fs.aio-max-nr), and one sandbox could use
// them up; databases and web servers then use threads.
const HIDEABLE = [
  'clone3',
  'io_cancel',
  'io_destroy',
  'io_getevents',
  'io_pgetevents',
  'io_setup',
  'io_submit',
]

// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET: a clone with any of them is refused.
const NAMESPACE_FLAGS = 0x7e020000
// AF_UNIX, AF_INET, AF_INET6. Not vsock (it reaches the hypervisor), not AF_ALG, packet, bluetooth ...
const SOCKET_FAMILIES = [1, 2, 10]
const AF_NETLINK = 16
// ROUTE, SOCK_DIAG, AUDIT (PAM), NETFILTER, KOBJECT_UEVENT, GENERIC: queries to the kernel. Not USERSOCK, for messages between
// programs: the kernel charges their memory to nobody.
const NETLINK_PROTOCOLS = [0, 4, 9, 12, 15, 16]
// PER_LINUX, PER_LINUX32, ADDR_NO_RANDOMIZE (debuggers), and the query for the current value.
const PERSONALITIES = [0x0, 0x8, 0x40000, 0x20000, 0x20008, 0xffffffff]

/** `hideable`: whether the calls of HIDEABLE fail with ENOSYS or are allowed. */
export function seccompProfile(
  hideable: 'hidden' | 'allowed' = 'hidden',
  arch: NodeJS.Architecture = process.arch,
): SeccompProfile {
  const architecture = ARCHITECTURES[arch]
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: EPERM,
    architectures: architecture ? [architecture] : [],
    syscalls: [
      { names: Object.values(ALLOWED).flatMap((names) => names.split(/\s+/)), action: 'SCMP_ACT_ALLOW' },
      {
        names: ['clone'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value: NAMESPACE_FLAGS, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
      },
      hideable === 'allowed'
        ? { names: HIDEABLE, action: 'SCMP_ACT_ALLOW' }
        : { names: HIDEABLE, action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
      ...SOCKET_FAMILIES.map((family) => allowWhen('socket', family)),
      ...NETLINK_PROTOCOLS.map((protocol) => allowWhen('socket', AF_NETLINK, { index: 2, value: protocol })),
      ...PERSONALITIES.map((personality) => allowWhen('personality', personality)),
    ],
  }
}

/** Only "equal" is safe: the kernel ignores the upper half of an int argument, so "not equal" could be bypassed. */
function allowWhen(name: string, value: number, ...more: { index: number; value: number }[]): SeccompRule {
  const args = [{ index: 0, value }, ...more].map((arg) => ({ ...arg, op: 'SCMP_CMP_EQ' }))
  return { names: [name], action: 'SCMP_ACT_ALLOW', args }
}
