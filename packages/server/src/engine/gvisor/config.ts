// What runsc is told about a shell. There is no seccomp profile and there are no masked paths: programs inside talk to gVisor's own
// kernel, which has its own filter towards the machine's.
import type { Limits } from '../engine.ts'
import { CAPABILITIES, INSIDE_DIR } from '../oci/config.ts'

export interface GvisorSpec {
  /** The first host uid and gid of its range. */
  uidBase: number
  uidCount: number
  /** Where the warden mounts the root while it starts the shell. */
  rootDir: string
  /** Mounted read-only at /.islet. */
  linkDir: string
  cgroupsPath: string
  hostname: string
  limits: Limits
}

const CPU_PERIOD_US = 100_000

/**
 * How many tasks of the machine a sandbox may have: those of gVisor's kernel and file server, and for each of its own a process that
 * holds its memory with a few threads in it.
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
      env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      cwd: '/',
      capabilities: { bounding: CAPABILITIES, effective: CAPABILITIES, permitted: CAPABILITIES },
      noNewPrivileges: false,
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
      // The network namespace is the one runsc is started in.
      namespaces: ['user', 'pid', 'mount', 'ipc', 'uts'].map((type) => ({ type })),
      uidMappings: range,
      gidMappings: range,
      cgroupsPath: spec.cgroupsPath,
      resources: {
        memory: { limit: memoryBytes || -1 },
        cpu: { period: CPU_PERIOD_US, quota: cpuMillis ? (cpuMillis * CPU_PERIOD_US) / 1000 : -1 },
        pids: { limit: hostTasks(pids) || -1 },
      },
    },
  })
}

/** Half of the memory limit is left to programs. */
function shmOptions(memoryBytes: number): string[] {
  const size = memoryBytes ? [`size=${Math.floor(memoryBytes / 2)}`] : []
  return ['nosuid', 'nodev', 'mode=1777', ...size]
}
