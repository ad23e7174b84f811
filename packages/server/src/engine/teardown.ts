// Removes everything that a dead server had on this machine, without its warden. Slow and thorough.
import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { listMounts } from '../lib/mounts.ts'
import { isRunning, type ProcessIdentity, signal } from '../lib/proc.ts'
import { killTree } from './tree.ts'

const run = promisify(execFile)

interface Remains {
  /** The name of its bridge, firewall table and cgroup; undefined if it has none. */
  name: string | undefined
  runDir: string
  /** Mounts below it are unmounted, loop devices on its files detached. The directory itself stays. */
  dataDir?: string
}

/** The state directories of the runtimes, below the run directory. */
export const RUNTIME_ROOTS = ['runc', 'runsc']
const KILL_TRIES = 100
const KILL_PAUSE_MS = 20

/** Whether a process of one of its cells is alive. */
export async function hasLife(remains: Pick<Remains, 'name' | 'runDir'>): Promise<boolean> {
  for (const cgroup of await cgroupsOf(remains.name)) {
    if ((await processesIn(cgroup)).length > 0) return true
  }
  for (const process of await recordedProcesses(remains.runDir)) {
    if (isRunning(process)) return true
  }
  return false
}

export async function tearDown({ name, runDir, dataDir }: Remains): Promise<void> {
  await killRuntimes(runDir)
  await killAll(name, runDir)
  await removeCgroups(name)
  if (name) await removeNetwork(name)
  for (const directory of [runDir, dataDir]) {
    if (directory) await unmountBelow(directory)
  }
  if (dataDir) await detachLoops(dataDir)
}

/** Removes the empty cgroups of a slot. */
export async function removeCgroups(name: string | undefined): Promise<void> {
  for (const cgroup of await cgroupsOf(name)) await rmdir(cgroup).catch(() => {})
}

/** A runtime that outlived its server would start a cell that no server knows. */
export async function killRuntimes(runDir: string): Promise<void> {
  for (const entry of await readdir('/proc')) {
    // Skip the many processes of sandboxes: they have other users, and could choose their command line.
    if (!/^\d+$/.test(entry) || ownerOf(entry) !== process.geteuid?.()) continue
    const argv = await readFile(`/proc/${entry}/cmdline`, 'utf8').catch(() => '')
    const words = argv.split('\0')
    const ours = words[1] === '--root' && RUNTIME_ROOTS.some((root) => words[2] === join(runDir, root))
    if (ours) signal(Number(entry), 'SIGKILL')
  }
}

function ownerOf(pid: string): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid
}

async function killAll(name: string | undefined, runDir: string): Promise<void> {
  for (let i = 0; !(await killCgroups(name)); i++) {
    if (i === KILL_TRIES) throw new Error(`Processes of ${runDir} do not die.`)
    await sleep(KILL_PAUSE_MS)
  }
  for (const process of await recordedProcesses(runDir)) await killTree(process)
}

/** True if there was no process left to kill. */
async function killCgroups(name: string | undefined): Promise<boolean> {
  let empty = true
  for (const cgroup of await cgroupsOf(name)) {
    const pids = await processesIn(cgroup)
    if (pids.length === 0) continue
    empty = false
    await writeFile(join(cgroup, 'cgroup.kill'), '1').catch(() => {})
    for (const pid of pids) signal(pid, 'SIGKILL')
    // On cgroup v1 a frozen process dies only when it is thawed.
    await writeFile(join(cgroup, 'freezer.state'), 'THAWED').catch(() => {})
  }
  return empty
}

async function recordedProcesses(runDir: string): Promise<ProcessIdentity[]> {
  const cells = await readdir(join(runDir, 's')).catch(() => [])
  const found: ProcessIdentity[] = []
  for (const cell of cells) {
    const text = await readFile(join(runDir, 's', cell, 'cell.json'), 'utf8').catch(() => '{}')
    try {
      const { process } = JSON.parse(text)
      if (process) found.push(process)
    } catch {
      // Written incompletely: its process was never recorded, but is in its cgroup.
    }
  }
  return found
}

/** The directories of a cgroup in every hierarchy, deepest first. */
async function cgroupsOf(name: string | undefined): Promise<string[]> {
  if (!name) return []
  const found: string[] = []
  for (const mount of await listMounts()) {
    if (mount.type !== 'cgroup' && mount.type !== 'cgroup2') continue
    await collect(join(mount.at, name), found)
  }
  return found
}

async function collect(directory: string, into: string[]): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => undefined)
  if (!entries) return
  for (const entry of entries) if (entry.isDirectory()) await collect(join(directory, entry.name), into)
  into.push(directory)
}

async function processesIn(cgroup: string): Promise<number[]> {
  const text = await readFile(join(cgroup, 'cgroup.procs'), 'utf8').catch(() => '')
  // 0 is a process outside of our pid namespace.
  return text
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 1)
}

async function removeNetwork(name: string): Promise<void> {
  await run('nft', ['delete', 'table', 'inet', name]).catch(() => {})
  const ports = await readdir(`/sys/class/net/${name}/brif`).catch(() => [])
  for (const device of [...ports, name]) await run('ip', ['link', 'delete', device]).catch(() => {})
}

async function unmountBelow(directory: string): Promise<void> {
  const below = (await listMounts()).filter(
    (mount) => mount.at.startsWith(`${directory}/`) || mount.at === directory,
  )
  // Last first: later mounts may be on top of earlier ones.
  for (const mount of below.reverse()) {
    await run('umount', [mount.at]).catch(() => run('umount', ['--lazy', mount.at]))
  }
}

async function detachLoops(directory: string): Promise<void> {
  for (const device of await readdir('/sys/block').catch(() => [])) {
    const file = await readFile(`/sys/block/${device}/loop/backing_file`, 'utf8').catch(() => '')
    if (file.startsWith(`${directory}/`)) await run('losetup', ['--detach', `/dev/${device}`]).catch(() => {})
  }
}
