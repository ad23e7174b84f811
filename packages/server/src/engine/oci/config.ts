// The config.json of a cell: an OCI bundle whose root is almost empty. The warden mounts the real root at bind, so nothing
// here depends on the image, name or limits of a sandbox.
import { GUEST_OOM_SCORE } from '../oom.ts'
import { seccompProfile } from './seccomp.ts'
import { viewMounts } from './view.ts'

interface CellSpec {
  /** The first host uid and gid of its range. */
  uidBase: number
  uidCount: number
  /** Made by the warden, with these ids. */
  userNamespace: string
  /** The directory with the mount points of `SKELETON`. */
  rootDir: string
  /** Mounted read-only at /.islet. */
  linkDir: string
  cgroupsPath: string
}

/** The mount point of the link directory in every root. */
export const INSIDE_DIR = '/.islet'

/** The mount points in a cell's first root; all cells share that directory. */
export const SKELETON = ['proc', 'dev', 'sys', 'tmp', '.islet']

// Root inside needs these to install packages, switch users, serve low ports and chroot; AUDIT_WRITE is for PAM. Not NET_RAW
// (forged packets; ping works without it), not MKNOD, nothing that reaches beyond the sandbox.
export const CAPABILITIES = [
  'CAP_AUDIT_WRITE',
  'CAP_CHOWN',
  'CAP_DAC_OVERRIDE',
  'CAP_FOWNER',
  'CAP_FSETID',
  'CAP_KILL',
  'CAP_NET_BIND_SERVICE',
  'CAP_SETFCAP',
  'CAP_SETGID',
  'CAP_SETPCAP',
  'CAP_SETUID',
  'CAP_SYS_CHROOT',
]

// Before bind only the guest runs in the cell. bind sets the real limits.
const UNBOUND_MEMORY_BYTES = 256 * 1024 * 1024
const UNBOUND_PIDS = 64

// Files that reveal the machine's disks, boot, modules, hardware and mounts. Programs work without them: masked files and
// directories are empty.
const MASKED_PATHS = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/bootconfig',
  '/proc/cmdline',
  '/proc/diskstats',
  '/proc/fs',
  '/proc/interrupts',
  '/proc/kallsyms',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/mdstat',
  '/proc/modules',
  '/proc/partitions',
  '/proc/scsi',
  '/proc/sched_debug',
  '/proc/swaps',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/version_signature',
  '/sys/block',
  '/sys/class/block',
  '/sys/devices/pci0000:00',
  '/sys/devices/platform',
  '/sys/devices/virtual/bdi',
  '/sys/devices/virtual/block',
  '/sys/devices/virtual/dmi',
  '/sys/devices/virtual/powercap',
  '/sys/firmware',
  '/sys/fs/btrfs',
  '/sys/fs/ext4',
  '/sys/module',
]
const READONLY_PATHS = ['/proc/bus', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger']

/** The most terminals of one sandbox. The whole machine has kernel.pty.max of them; see machine-room.ts. */
export const MAX_PTYS = 256

const MOUNTS = [
  { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
  {
    destination: '/dev',
    type: 'tmpfs',
    source: 'tmpfs',
    options: ['nosuid', 'noexec', 'strictatime', 'mode=755', 'size=64k'],
  },
  {
    destination: '/dev/pts',
    type: 'devpts',
    source: 'devpts',
    options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5', `max=${MAX_PTYS}`],
  },
  // Its pages count against the sandbox's memory limit. The default size would be half of the machine's memory.
  {
    destination: '/dev/shm',
    type: 'tmpfs',
    source: 'shm',
    options: ['nosuid', 'nodev', 'mode=1777', 'size=512m'],
  },
  { destination: '/dev/mqueue', type: 'mqueue', source: 'mqueue', options: ['nosuid', 'noexec', 'nodev'] },
  { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
  // Language runtimes size their heaps by the limits in these files.
  {
    destination: '/sys/fs/cgroup',
    type: 'cgroup',
    source: 'cgroup',
    options: ['nosuid', 'noexec', 'nodev', 'relatime', 'ro'],
  },
]

// In the cell's own network namespace: IPv6 on the loopback only. The warden sets the rest.
const SYSCTL = { 'net.ipv6.conf.default.disable_ipv6': '1' }

// The profile is the largest part of the file and always the same, so it is serialised once.
const SECCOMP = JSON.stringify(seccompProfile())
const SECCOMP_PLACE = '"seccomp":null'

export function cellConfig(spec: CellSpec): string {
  const range = [{ containerID: 0, hostID: spec.uidBase, size: spec.uidCount }]
  const config = {
    ociVersion: '1.0.2',
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: [`${INSIDE_DIR}/guest`],
      env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      cwd: '/',
      capabilities: { bounding: CAPABILITIES, effective: CAPABILITIES, permitted: CAPABILITIES },
      // sudo inside must work; setuid in a user namespace gives no rights outside of it.
      noNewPrivileges: false,
      oomScoreAdj: GUEST_OOM_SCORE,
    },
    root: { path: spec.rootDir, readonly: true },
    hostname: 'islet',
    mounts: [
      ...MOUNTS,
      {
        destination: INSIDE_DIR,
        type: 'bind',
        source: spec.linkDir,
        options: ['bind', 'ro', 'nosuid', 'nodev', 'private'],
      },
      ...viewMounts(spec.linkDir),
    ],
    linux: {
      namespaces: [
        { type: 'user', path: spec.userNamespace },
        ...['pid', 'mount', 'ipc', 'uts', 'network', 'cgroup'].map((type) => ({ type })),
      ],
      uidMappings: range,
      gidMappings: range,
      cgroupsPath: spec.cgroupsPath,
      resources: {
        devices: [{ allow: false, access: 'rwm' }],
        memory: { limit: UNBOUND_MEMORY_BYTES },
        pids: { limit: UNBOUND_PIDS },
      },
      sysctl: SYSCTL,
      seccomp: null,
      maskedPaths: MASKED_PATHS,
      readonlyPaths: READONLY_PATHS,
    },
  }
  return JSON.stringify(config).replace(SECCOMP_PLACE, () => `"seccomp":${SECCOMP}`)
}
