// The config.json of a gVisor cell. It masks no paths: /proc and /sys are those of gVisor's own kernel.
import type { Limits } from '../engine.ts'
import { CAPABILITIES, INSIDE_DIR } from '../oci/config.ts'
import { seccompProfile } from '../oci/seccomp.ts'
import { GUEST_OOM_SCORE } from '../oom.ts'

interface GvisorSpec {
  /** The first host uid and gid of its range. */
  uidBase: number
  uidCount: number
  /** The warden mounts the root here while it starts the cell. */
  rootDir: string
  /** Mounted read-only at /.islet. */
  linkDir: string
  /** Made by the warden. */
  networkNamespace: string
  cgroupsPath: string
  hostname: string
  limits: Limits
}

const CPU_PERIOD_US = 100_000

/**
 * The most tasks of the machine for a sandbox: those of gVisor's kernel and file server, plus, for each process inside, a host
 * process with a few threads.
 */
export function hostTasks(pids: number): number {
  return pids === 0 ? 0 : 128 + 4 * pids
}

export function gvisorConfig(spec: GvisorSpec): string {
  const range = [{ containerID: 0, hostID: spec.uidBase, size: spec.uidCount }]
  const { memoryBytes, cpuMillis, pids } = spec.limits
  return JSON.stringify({
    ociVersion: '1.0.2',
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: [`${INSIDE_DIR}/guest`],
      env: [
        'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        // The guest tells them to gVisor's kernel; see native/guest/settle.h.
        ...(memoryBytes ? [`ISLET_MEMORY_MAX=${memoryBytes}`] : []),
        ...(pids ? [`ISLET_PIDS_MAX=${pids}`] : []),
      ],
      cwd: '/',
      capabilities: { bounding: CAPABILITIES, effective: CAPABILITIES, permitted: CAPABILITIES },
      noNewPrivileges: false,
      oomScoreAdj: GUEST_OOM_SCORE,
    },
    root: { path: spec.rootDir },
    hostname: spec.hostname,
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs' },
      { destination: '/dev/pts', type: 'devpts', source: 'devpts' },
      { destination: '/dev/shm', type: 'tmpfs', source: 'shm', options: shmOptions(memoryBytes) },
      { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
      { destination: '/sys/fs/cgroup', type: 'cgroup', source: 'cgroup', options: ['ro'] },
      {
        destination: INSIDE_DIR,
        type: 'bind',
        source: spec.linkDir,
        options: ['bind', 'ro', 'nosuid', 'nodev'],
      },
    ],
    linux: {
      namespaces: [
        ...['user', 'pid', 'mount', 'ipc', 'uts'].map((type) => ({ type })),
        { type: 'network', path: spec.networkNamespace },
      ],
      uidMappings: range,
      gidMappings: range,
      cgroupsPath: spec.cgroupsPath,
      resources: {
        memory: { limit: memoryBytes || -1 },
        cpu: { period: CPU_PERIOD_US, quota: cpuMillis ? (cpuMillis * CPU_PERIOD_US) / 1000 : -1 },
        pids: { limit: hostTasks(pids) || -1 },
      },
      // gVisor answers hidden calls with EPERM, not ENOSYS, and then libc cannot make threads. Namespaces inside are harmless.
      seccomp: seccompProfile('allowed'),
    },
  })
}

/** Half of the memory limit; the other half is left to programs. */
function shmOptions(memoryBytes: number): string[] {
  const size = memoryBytes ? [`size=${Math.floor(memoryBytes / 2)}`] : []
  return ['nosuid', 'nodev', 'mode=1777', ...size]
}
