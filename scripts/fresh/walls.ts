// The isolation of a new machine: its own mounts, processes, network behind NAT, and cgroups. All are named after one process, so
// that they can be removed even if that process was killed.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { AUTHORITIES, resolvConf } from './root.ts'

const INIT = fileURLToPath(new URL('init.sh', import.meta.url))
const ROOTS = '/var/tmp'
const NAME = /^islet-fresh-(\d+)$/
/** Settings of this machine by which programs reach its registries. */
const CARRIED = /^(https?_proxy|no_proxy|npm_config_registry)$/i

/** Runs a shell script in the root and answers its exit code. */
export async function enter(name: string, root: string, script: string): Promise<number> {
  writeFileSync(join(root, 'root/leg.sh'), `set -eu\n${script}\n`)
  const groups = cgroups().map((at) => makeGroup(join(at, name)))
  const network = canRoute() ? makeNetwork(name) : []
  const unshare = ['unshare', '--mount', '--propagation', 'private', '--pid', '--fork', '--cgroup']
  const enterGroups = groups.map((group) => `echo $$ > ${group}/cgroup.procs`).join(' && ')
  const child = spawn(
    'sh',
    ['-c', `${enterGroups} && exec "$@"`, 'sh', ...network, ...unshare, 'sh', INIT, root],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: environment(root),
    },
  )
  const [code] = await once(child, 'exit')
  return code ?? 1
}

/** Removes everything of that name. */
export async function clean(name: string, { keep = false } = {}): Promise<void> {
  const groups = cgroups()
    .map((at) => join(at, name))
    .filter((group) => existsSync(group))
  while (groups.flatMap(processesIn).map(kill).length > 0) await sleep(50)
  for (const group of groups.flatMap(below).reverse()) rmdirSync(group)
  quietly('ip', ['link', 'delete', linkOf(name)])
  quietly('ip', ['netns', 'delete', name])
  quietly('nft', ['delete', 'table', 'ip', name])
  const root = join(ROOTS, name)
  if (!existsSync(root)) return
  detachLoops(root)
  if (!keep) rmSync(root, { recursive: true, force: true })
}

/** Removes what killed runs have left. */
export async function sweep(): Promise<void> {
  for (const name of readdirSync(ROOTS)) {
    const pid = NAME.exec(name)?.[1]
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) await clean(name)
  }
}

function environment(root: string): NodeJS.ProcessEnv {
  const carried = Object.entries(process.env).filter(([name]) => CARRIED.test(name))
  const authorities = existsSync(join(root, AUTHORITIES)) && {
    npm_config_cafile: AUTHORITIES,
    NODE_EXTRA_CA_CERTS: AUTHORITIES,
  }
  return {
    ...Object.fromEntries(carried),
    ...authorities,
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: '/root',
    LANG: 'C.UTF-8',
  }
}

/** Where each hierarchy of cgroups is mounted. */
function cgroups(): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return lines.filter((line) => / - cgroup2? /.test(line)).map((line) => line.split(' ')[4]!)
}

function makeGroup(group: string): string {
  mkdirSync(group)
  // In cgroup v1 a cpuset without CPUs takes no process.
  const isCpuset = existsSync(join(group, 'cpuset.sched_load_balance'))
  for (const file of isCpuset ? ['cpuset.cpus', 'cpuset.mems'] : []) {
    writeFileSync(join(group, file), readFileSync(join(group, '..', file)))
  }
  return group
}

/** False if this machine reaches its nameserver or proxy through its loopback. */
function canRoute(): boolean {
  const loopback = /\b127\.|localhost|::1/
  const proxies = Object.entries(process.env).filter(([name]) => /^https?_proxy$/i.test(name))
  const nameservers = readFileSync(resolvConf(), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('nameserver'))
  return ![...nameservers, ...proxies.map(([, value]) => value ?? '')].some((text) => loopback.test(text))
}

/** A wire to a network namespace, and NAT. Answers with the words that run a command there. */
function makeNetwork(name: string): string[] {
  const number = processOf(name) % 256
  const [near, far] = [`198.19.${number}.1`, `198.19.${number}.2`]
  const [route] = JSON.parse(execFileSync('ip', ['-json', 'route', 'show', 'default'], { encoding: 'utf8' }))
  const mtu = readFileSync(`/sys/class/net/${route?.dev ?? 'lo'}/mtu`, 'utf8').trim()
  ip('netns', 'add', name)
  ip(
    'link',
    'add',
    linkOf(name),
    'mtu',
    mtu,
    'type',
    'veth',
    'peer',
    'name',
    'eth0',
    'mtu',
    mtu,
    'netns',
    name,
  )
  ip('address', 'add', `${near}/30`, 'dev', linkOf(name))
  ip('link', 'set', linkOf(name), 'up')
  ip('-n', name, 'link', 'set', 'lo', 'up')
  ip('-n', name, 'address', 'add', `${far}/30`, 'dev', 'eth0')
  ip('-n', name, 'link', 'set', 'eth0', 'up')
  ip('-n', name, 'route', 'add', 'default', 'via', near)
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1')
  const chain = '{ type nat hook postrouting priority srcnat; }'
  for (const rule of [
    `add table ip ${name}`,
    `add chain ip ${name} out ${chain}`,
    `add rule ip ${name} out ip saddr ${far} oifname != ${linkOf(name)} masquerade`,
  ]) {
    execFileSync('nft', [rule])
  }
  return ['nsenter', `--net=/run/netns/${name}`]
}

const processOf = (name: string): number => Number(NAME.exec(name)![1])
const linkOf = (name: string): string => `isf${processOf(name)}`

function ip(...words: string[]): void {
  execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'inherit'] })
}

function quietly(program: string, args: string[]): void {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
  } catch {
    // It was never created.
  }
}

/** A group and all in it, outermost first. */
function below(group: string): string[] {
  const inner = readdirSync(group, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return [group, ...inner.flatMap(({ name }) => below(join(group, name)))]
}

function processesIn(group: string): string[] {
  return below(group).flatMap((each) =>
    readFileSync(join(each, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean),
  )
}

function kill(pid: string): void {
  try {
    process.kill(Number(pid), 'SIGKILL')
  } catch {
    // It has already ended.
  }
}

/** A loop device keeps a file of a root that is gone; the kernel names it by device and inode. */
function detachLoops(root: string): void {
  const columns = 'NAME,BACK-INO,BACK-MAJ:MIN'
  const lines = execFileSync('losetup', ['--list', '--noheadings', '--output', columns], {
    encoding: 'utf8',
  })
  const { dev } = statSync(root)
  const device = `${(dev >> 8) & 0xfff}:${(dev & 0xff) | ((dev >> 12) & 0xfff00)}`
  for (const [loop, inode, on] of lines
    .split('\n')
    .filter(Boolean)
    .map((line) => line.trim().split(/\s+/))) {
    if (on !== device) continue
    const found = execFileSync('find', [root, '-xdev', '-inum', inode!, '-print', '-quit'], {
      encoding: 'utf8',
    })
    if (found !== '') quietly('losetup', ['--detach', loop!])
  }
}
