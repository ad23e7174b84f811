// Checks what engine `oci` needs of a machine, for `islet doctor` and for the error at start.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { release } from 'node:os'
import { promisify } from 'node:util'
import { chooseRuntime, runtimeVersion } from './runtime.ts'

export { probeHoles } from './holes.ts'

export interface Finding {
  name: string
  ok: boolean
  /** A sentence that says what was found. */
  detail: string
  /** Advice if it is not ok. */
  mend?: string
  /** The engine works without it. */
  optional?: true
}

const OLDEST_KERNEL = [5, 19]
const OLDEST_RUNC = [1, 1]
const CONTROLLERS = ['cpu', 'memory', 'pids']
// The capabilities that the server, the runtime and the warden use, with their bits in <linux/capability.h>.
const CAPABILITIES: Record<string, number> = {
  CAP_CHOWN: 0,
  CAP_DAC_OVERRIDE: 1,
  CAP_FOWNER: 3,
  CAP_KILL: 5,
  CAP_SETGID: 6,
  CAP_SETUID: 7,
  CAP_NET_ADMIN: 12,
  CAP_SYS_CHROOT: 18,
  CAP_SYS_PTRACE: 19,
  CAP_SYS_ADMIN: 21,
}

export async function probeOci(): Promise<Finding[]> {
  if (process.platform !== 'linux') {
    return [
      {
        name: 'system',
        ok: false,
        detail: `This is ${process.platform}; sandboxes need Linux.`,
        mend: 'Run Islet on Linux, or in a Linux virtual machine.',
      },
    ]
  }
  return Promise.all([
    root(),
    capabilities(),
    kernel(),
    overlay(),
    userNamespaces(),
    controllers(),
    runc(),
    crun(),
    runsc(),
    tool('nft', ['--version'], 'nftables', 'sandboxes with a network'),
    tool('ip', ['-V'], 'iproute2', 'removing what dead servers left'),
    btrfs(),
    forwarding(),
    forwardPolicy(),
  ])
}

async function root(): Promise<Finding> {
  const ok = process.geteuid?.() === 0
  return {
    name: 'root',
    ok,
    detail: ok ? 'The server runs as root.' : 'The server does not run as root, which walls need.',
    mend: 'Start it with sudo, or as a system service; without root only --engine process works.',
  }
}

async function capabilities(): Promise<Finding> {
  const effective = BigInt(`0x${/^CapEff:\s*(\S+)/m.exec(await read('/proc/self/status'))?.[1] ?? '0'}`)
  const missing = Object.entries(CAPABILITIES).flatMap(([name, bit]) =>
    (effective >> BigInt(bit)) & 1n ? [] : name,
  )
  return {
    name: 'capabilities',
    ok: missing.length === 0,
    detail: missing.length === 0 ? 'The server has all it needs.' : `The server lacks ${missing.join(', ')}.`,
    mend: 'Inside a container: run it with --privileged. As a service: remove CapabilityBoundingSet.',
  }
}

async function kernel(): Promise<Finding> {
  return {
    name: 'kernel',
    ok: isAtLeast(release(), OLDEST_KERNEL),
    detail: `Linux ${release()}; ${OLDEST_KERNEL.join('.')} or newer can mount layers with shifted ids.`,
    mend: 'Upgrade the kernel.',
  }
}

async function overlay(): Promise<Finding> {
  const known = () => read('/proc/filesystems').then((text) => /\boverlay$/m.test(text))
  const ok = (await known()) || (await runs('modprobe', ['overlay']).then(known))
  return {
    name: 'overlay',
    ok,
    detail: ok ? 'The kernel has overlayfs.' : 'The kernel has no overlayfs.',
    mend: 'modprobe overlay; if there is no such module, use a kernel that has it.',
  }
}

async function userNamespaces(): Promise<Finding> {
  const most = Number(await read('/proc/sys/user/max_user_namespaces'))
  return {
    name: 'user namespaces',
    ok: most > 0,
    detail: most > 0 ? `Up to ${most} are allowed.` : 'They are disabled.',
    mend: 'sysctl user.max_user_namespaces=15000',
  }
}

async function controllers(): Promise<Finding> {
  const unified = (await read('/sys/fs/cgroup/cgroup.controllers')).split(/\s+/)
  const mounted = [...(await read('/proc/self/mountinfo')).matchAll(/ - cgroup \S+ (\S+)$/gm)]
  const found = new Set([...unified, ...mounted.flatMap((match) => match[1]!.split(','))])
  const missing = CONTROLLERS.filter((controller) => !found.has(controller))
  return {
    name: 'cgroups',
    ok: missing.length === 0,
    detail:
      missing.length > 0
        ? `There is no controller for ${missing.join(', ')}.`
        : `${CONTROLLERS.join(', ')} can be limited.`,
    mend: 'Mount cgroup2 at /sys/fs/cgroup; on some boards add cgroup_enable=memory to the kernel command line.',
  }
}

async function runsc(): Promise<Finding> {
  const version = await runtimeVersion('runsc')
  return {
    name: 'runsc',
    ok: version !== undefined,
    optional: true,
    detail: version
      ? `runsc ${version} is installed: ISLET_ISOLATION=gvisor works.`
      : 'runsc is not installed: ISLET_ISOLATION=gvisor does not work.',
    mend: 'islet setup --gvisor',
  }
}

async function runc(): Promise<Finding> {
  const version = await runtimeVersion('runc')
  return {
    name: 'runc',
    ok: version !== undefined && isAtLeast(version, OLDEST_RUNC),
    detail: version ? `runc ${version}.` : 'runc is not installed.',
    mend: 'apt-get install runc; islet setup does it.',
  }
}

async function crun(): Promise<Finding> {
  const ok = (await chooseRuntime('auto')) === 'crun'
  return {
    name: 'crun',
    ok,
    optional: true,
    detail: ok
      ? 'crun starts sandboxes, faster than runc.'
      : 'No usable crun: runc starts sandboxes, slower.',
    mend: 'apt-get install crun; islet setup does it.',
  }
}

async function tool(name: string, args: string[], pack: string, purpose: string): Promise<Finding> {
  const ok = await runs(name, args)
  return {
    name,
    ok,
    detail: ok ? `${name} is installed.` : `${name} is not installed; ${purpose} need it.`,
    mend: `apt-get install ${pack}; islet setup does it.`,
  }
}

async function btrfs(): Promise<Finding> {
  const known = /\bbtrfs$/m.test(await read('/proc/filesystems')) || (await runs('modprobe', ['btrfs']))
  const ok = known && (await runs('mkfs.btrfs', ['--version']))
  return {
    name: 'btrfs',
    ok,
    optional: true,
    detail: ok
      ? 'Forks and checkpoints are snapshots and copy no files.'
      : 'There is no btrfs: forks copy files, disk limits are not enforced.',
    mend: 'apt-get install btrfs-progs, with a kernel that has btrfs.',
  }
}

async function forwarding(): Promise<Finding> {
  const on = (await read('/proc/sys/net/ipv4/ip_forward')).trim() === '1'
  return {
    name: 'ip_forward',
    ok: true,
    optional: true,
    detail: on ? 'It is enabled.' : 'It is disabled; the first sandbox with a network enables it.',
  }
}

/** Docker and other firewalls may drop forwarded packets by default, and our rules cannot override theirs. */
async function forwardPolicy(): Promise<Finding> {
  const drops = /policy drop/.test(await output('nft', ['list', 'chain', 'ip', 'filter', 'FORWARD']))
  return {
    name: 'forwarding',
    ok: !drops,
    optional: true,
    detail: drops
      ? 'Another firewall on this machine drops the packets of sandboxes.'
      : 'No other firewall blocks sandboxes.',
    mend: "iptables -I FORWARD -i 'islet+' -j ACCEPT; iptables -I FORWARD -o 'islet+' -j ACCEPT",
  }
}

function isAtLeast(version: string, [major = 0, minor = 0]: readonly number[]): boolean {
  const [hasMajor = 0, hasMinor = 0] = version.split(/[.+-]/).map(Number)
  return hasMajor > major || (hasMajor === major && hasMinor >= minor)
}

async function read(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}

async function runs(name: string, args: string[]): Promise<boolean> {
  return promisify(execFile)(name, args).then(
    () => true,
    () => false,
  )
}

async function output(name: string, args: string[]): Promise<string> {
  return promisify(execFile)(name, args).then(
    ({ stdout }) => stdout,
    () => '',
  )
}
