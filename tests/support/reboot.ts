// Simulates a reboot for one server: its processes are killed, its mounts and files in /run removed.
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { until } from '../coming-from/until.ts'
import { slotOf, tracesOf } from './leftovers.ts'
import { needs } from './programs.ts'
import type { TestServer } from './server.ts'

needs('ip', 'nft')

/** Call it while the server is down. */
export async function reboot({ dataDir }: TestServer): Promise<void> {
  const slot = slotOf(dataDir)
  if (slot === undefined) return
  const name = `islet${slot}`
  const groups = globSync(`/sys/fs/cgroup/{,*/}${name}`)
  for (const group of groups) thaw(group)
  await until(() => {
    const left = groups.flatMap((group) => below(group)).flatMap(processesIn)
    for (const pid of left) kill(pid)
    return left.length === 0
  })
  for (const group of groups) for (const directory of below(group).reverse()) rmdirSync(directory)
  for (const line of tracesOf(dataDir, slot).mounts.reverse()) run('umount', ['--lazy', mountPointOf(line)])
  for (const point of mountPoints(`/run/islet/${slot}/`).reverse()) run('umount', ['--lazy', point])
  for (const link of tracesOf(dataDir, slot).links) run('ip', ['link', 'delete', link])
  for (const table of tracesOf(dataDir, slot).tables) run('nft', ['delete', ...table.split(' ')])
  for (const loop of loopsOf(dataDir)) run('losetup', ['--detach', loop])
  rmSync(`/run/islet/${slot}`, { recursive: true })
}

/** A group and all in it, outermost first. */
function below(group: string): string[] {
  if (!existsSync(group)) return []
  const inner = readdirSync(group, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return [group, ...inner.flatMap((entry) => below(`${group}/${entry.name}`))]
}

function processesIn(group: string): number[] {
  return readFileSync(`${group}/cgroup.procs`, 'utf8').split('\n').filter(Boolean).map(Number)
}

/** A frozen process of cgroup v1 dies only once it is thawed. */
function thaw(group: string): void {
  const states = below(group).map((directory) => `${directory}/freezer.state`)
  for (const state of states.filter((path) => existsSync(path))) run('sh', ['-c', `echo THAWED > ${state}`])
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has already ended.
  }
}

function mountPoints(below: string): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n').filter(Boolean)
  return lines.map(mountPointOf).filter((point) => point.startsWith(below))
}

const mountPointOf = (line: string): string => line.split(' ')[4]!

function loopsOf(dataDir: string): string[] {
  const lines = run('losetup', ['--list', '--noheadings', '--output', 'NAME,BACK-FILE']).split('\n')
  return lines.filter((line) => line.includes(dataDir)).map((line) => line.split(/\s+/)[0]!)
}

function run(program: string, args: string[]): string {
  return execFileSync(program, args, { encoding: 'utf8' })
}
