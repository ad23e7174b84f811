// Everything that a server could leave on a machine, seen from outside: compare before and after.
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { needs } from './programs.ts'

needs('ip', 'nft')

export interface Traces {
  mounts: string[]
  processes: string[]
  cgroups: string[]
  links: string[]
  tables: string[]
  loops: string[]
  slots: string[]
}

/** Everything of the server of this data directory, and what belongs to no data directory but looks like ours. */
export function tracesOf(dataDir: string, held?: string): Traces {
  // Another server may have taken the slot: then what is there belongs to it.
  const slot = held !== undefined && isOfAnother(held, dataDir) ? undefined : held
  const name = slot === undefined ? undefined : `islet${slot}`
  return {
    mounts: lines(readFileSync('/proc/self/mountinfo', 'utf8')).filter((line) => line.includes(dataDir)),
    processes: processesOf(dataDir, slot),
    cgroups: name === undefined ? [] : globSync(`/sys/fs/cgroup/{,*/}${name}`),
    links: name === undefined ? [] : linksOf(name),
    tables:
      name === undefined
        ? []
        : lines(run('nft', ['list', 'tables'])).filter((line) => line.endsWith(` ${name}`)),
    loops: lines(run('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE'])).filter((line) =>
      line.includes(dataDir),
    ),
    slots: slotsOf(dataDir),
  }
}

/** The slot of /run/islet that the server of this data directory holds. */
export function slotOf(dataDir: string): string | undefined {
  return slotsOf(dataDir)[0]
}

function isOfAnother(slot: string, dataDir: string): boolean {
  const directory = `/run/islet/${slot}`
  return existsSync(directory) && !slotsOf(dataDir).includes(slot)
}

function slotsOf(dataDir: string): string[] {
  return listDirectory('/run/islet').filter((slot) =>
    listDirectory(`/run/islet/${slot}`).some(
      (file) => file.startsWith('owner') && readText(`/run/islet/${slot}/${file}`).includes(dataDir),
    ),
  )
}

/** The server, its warden, and every process in a cgroup of its slot. */
function processesOf(dataDir: string, slot: string | undefined): string[] {
  const found: string[] = []
  for (const pid of listDirectory('/proc').filter((entry) => /^\d+$/.test(entry))) {
    if (Number(pid) === process.pid) continue
    const command = readText(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
    const inCgroup =
      slot !== undefined && new RegExp(`:/islet${slot}(/|$)`, 'm').test(readText(`/proc/${pid}/cgroup`))
    if ((command.includes(dataDir) || inCgroup) && !isZombie(pid))
      found.push(`${pid} ${command.slice(0, 200)}`)
  }
  return found
}

/** Dead, and only waiting for the init of this machine, which takes its time. */
function isZombie(pid: string): boolean {
  return /^State:\tZ/m.test(readText(`/proc/${pid}/status`))
}

function linksOf(bridge: string): string[] {
  const links = JSON.parse(run('ip', ['-json', 'link', 'show'])) as { ifname: string; master?: string }[]
  return links.filter((link) => link.ifname === bridge || link.master === bridge).map((link) => link.ifname)
}

function run(program: string, args: string[]): string {
  return execFileSync(program, args, { encoding: 'utf8' })
}

function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

function listDirectory(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
