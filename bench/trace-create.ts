// Draws where the time of a cold create goes: node bench/trace-create.ts OUT.svg
//
// A real server makes sandboxes one after the other while perf notes when processes begin, execute and end (tracepoints of the
// kernel: a few microseconds each). For each runtime, the create with the median time is drawn.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { baseImageForTests } from '../packages/server/src/image/testing.ts'
import { TestServer } from '../tests/support/server.ts'
import { COLORS } from './plot/svg.ts'
import { drawTimeline, type Panel, type Row } from './plot/timeline.ts'
import { COLD } from './server.ts'

const CREATES = 15
const EVENTS = [
  'task:task_newtask',
  'sched:sched_process_exec',
  'sched:sched_process_exit',
  'syscalls:sys_enter_pivot_root',
  'syscalls:sys_enter_seccomp',
]
const CLONE_THREAD = 0x10000
const SETTLE_MS = 1000

interface Create {
  beganMs: number
  createdMs: number
  doneMs: number
}

interface Process {
  pid: number
  parent: number
  beganMs: number
  endedMs?: number
  program?: string
  executedMs?: number
  calls: { name: string; atMs: number }[]
}

const [out] = process.argv.slice(2)
if (!out) throw new Error('Which file? node bench/trace-create.ts OUT.svg')
const directory = mkdtempSync(join(tmpdir(), 'islet-trace-'))
try {
  const panels: Panel[] = []
  for (const runtime of ['crun', 'runc']) panels.push(await trace(runtime, join(directory, runtime)))
  writeFileSync(out, drawTimeline('A sandbox from nothing to the result of its first command', panels))
} finally {
  rmSync(directory, { recursive: true, force: true })
}

async function trace(runtime: string, file: string): Promise<Panel> {
  const { imagesDir } = await baseImageForTests()
  const settings = { ISLET_IMAGE_DIR: imagesDir, ISLET_DEFAULT_RUNTIME: 'base', ISLET_LOG_LEVEL: 'warn' }
  await using server = await TestServer.start({
    env: { ...settings, ...COLD, ISLET_RUNTIME_BINARY: runtime },
  })
  const islet = server.islet()
  const make = async (): Promise<Create> => {
    const beganMs = now()
    await using sandbox = await islet.sandboxes.create()
    const createdMs = now()
    await sandbox.runCommand('true')
    return { beganMs, createdMs, doneMs: now() }
  }
  for (let i = 0; i < CREATES; i++) await make()
  const events = EVENTS.flatMap((event) => ['-e', event])
  const perf = spawn('perf', ['record', '-q', '-a', '-k', 'CLOCK_MONOTONIC', '-o', file, ...events], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  await setTimeout(SETTLE_MS)
  const creates: Create[] = []
  for (let i = 0; i < CREATES; i++) creates.push(await make())
  await end(perf)
  const middle = creates.sort((a, b) => length(a) - length(b))[CREATES >> 1]!
  const warden = Number(readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').split(' ')[0])
  return { name: `${runtime}: ${length(middle).toFixed(0)} ms`, rows: rowsOf(middle, read(file), warden) }
}

/** On the same clock as perf's. */
function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

function length({ beganMs, doneMs }: Create): number {
  return doneMs - beganMs
}

async function end(perf: ChildProcess): Promise<void> {
  const exited = once(perf, 'exit')
  perf.kill('SIGINT')
  await exited
}

/** All processes in the recording. */
function read(file: string): Map<number, Process> {
  const output = execFileSync('perf', ['script', '-i', file, '-F', 'pid,time,event,trace'], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const found = new Map<number, Process>()
  for (const line of output.split('\n')) {
    const match = /^\s*(\d+)\s+(\d+\.\d+):\s+\w+:(\w+):\s?(.*)$/.exec(line)
    if (!match) continue
    const [pid, atMs, event, fields] = [Number(match[1]), Number(match[2]) * 1000, match[3]!, match[4]!]
    if (event === 'task_newtask') {
      const [, child, flags] = /pid=(\d+) .*clone_flags=(\w+)/.exec(fields)!
      if (Number.parseInt(flags!, 16) & CLONE_THREAD) continue
      found.set(Number(child), { pid: Number(child), parent: pid, beganMs: atMs, calls: [] })
      continue
    }
    const one = found.get(pid)
    if (!one) continue
    if (event === 'sched_process_exec') {
      Object.assign(one, { program: /filename=(\S+)/.exec(fields)![1], executedMs: atMs })
    } else if (event === 'sched_process_exit') {
      one.endedMs = atMs // its last thread's
    } else {
      one.calls.push({ name: event.replace('sys_enter_', ''), atMs })
    }
  }
  return found
}

function rowsOf(create: Create, processes: Map<number, Process>, warden: number): Row[] {
  const { beganMs, createdMs, doneMs } = create
  const within = [...processes.values()]
    .filter((one) => one.beganMs >= beganMs && one.beganMs <= doneMs && descends(one, processes, warden))
    .sort((a, b) => a.beganMs - b.beganMs)
  const ms = (at: number) => Math.min(at, doneMs) - beganMs
  const client: Row = {
    name: 'client: create, first command',
    spans: [
      { fromMs: 0, toMs: ms(createdMs), color: COLORS.quiet },
      { fromMs: ms(createdMs), toMs: ms(doneMs), color: COLORS.docker },
    ],
  }
  const rows = within.map((one): Row => {
    const endMs = ms(one.endedMs ?? doneMs)
    const spans = isGuest(one)
      ? [
          { fromMs: ms(one.beganMs), toMs: ms(one.executedMs!), color: COLORS.floor },
          { fromMs: ms(one.executedMs!), toMs: endMs },
        ]
      : [{ fromMs: ms(one.beganMs), toMs: endMs, color: one.parent === warden ? undefined : COLORS.floor }]
    // The seccomp filter is tried before it is set: the last call sets it.
    const marks = one.calls.slice(-1).map(({ name, atMs }) => ({ name, atMs: ms(atMs) }))
    return { name: nameOf(one, within, warden), spans, marks }
  })
  return [client, ...rows]
}

function descends(one: Process, processes: Map<number, Process>, warden: number): boolean {
  for (let at: Process | undefined = one; at; at = processes.get(at.parent)) {
    if (at.parent === warden) return true
  }
  return false
}

function nameOf(one: Process, within: readonly Process[], warden: number): string {
  const parent = within.find(({ pid }) => pid === one.parent)
  if (one.parent === warden) {
    if (within.some((other) => other.parent === one.pid)) return 'warden: starts the cell'
    return one.calls.length > 0 ? 'warden: binds the root' : 'warden: makes the layer'
  }
  if (parent?.parent === warden) return one.program ? 'the runtime' : 'holds the user namespace'
  if (isGuest(one)) return 'becomes the guest, and is it'
  return parent && isGuest(parent) ? 'the first command' : 'a process of the runtime'
}

function isGuest({ program }: Process): boolean {
  return program?.endsWith('/guest') ?? false
}
