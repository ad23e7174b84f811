// Makes sandboxes of an engine for tests, and removes everything afterwards.
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Instance } from '../../instance.ts'
import type { ProcessIdentity } from '../../lib/proc.ts'
import type { CellRecord } from '../cells.ts'
import type { BindOptions, Bound, Cell, Engine, PrepareOptions, Root } from '../engine.ts'
import { type Result, type RunOptions, TestLink } from './link.ts'

export interface Harness {
  readonly engine: Engine
  readonly instance: Instance
  /** An empty layer over the test image. */
  newRoot(): Promise<Root>
  /** A copy of a root's layer over the same image. Only with `memoryCheckpoint`. */
  copyRoot?(root: Root): Promise<Root>
  /** Closes the engine like a server that dies, and makes a new one, which is not started. */
  restart(): Promise<Engine>
  /** Removes everything. */
  close(): Promise<void>
}

export type BoxOptions = Partial<Omit<BindOptions, 'root'>> & PrepareOptions & { root?: Root }

/** A sandbox: a bound cell and a link to its guest. */
export interface Box extends AsyncDisposable {
  cell: Cell
  bound: Bound
  link: TestLink
  root: Root
  run(command: string | readonly string[], options?: RunOptions): Promise<Result>
  /** Runs a command and returns its output; a failed command throws. */
  print(command: string | readonly string[], options?: RunOptions): Promise<string>
}

export const LIMITS = { memoryBytes: 256 * 1024 * 1024, cpuMillis: 1000, pids: 128 }

export function newId(): string {
  return `sh-${randomBytes(5).toString('hex')}`
}

export async function openBox(harness: Harness, options: BoxOptions = {}): Promise<Box> {
  const { engine } = harness
  const cell = await engine.allocate(newId())
  const link = await TestLink.listen(join(cell.linkDir, 'link.sock'))
  try {
    await engine.prepare(cell, { background: options.background })
    const root = options.root ?? (await harness.newRoot())
    const bound = await bind(harness, cell, { ...options, root })
    await link.ready()
    if (bound.nameserver) {
      await link.setup([
        { path: '/etc/resolv.conf', content: `nameserver ${bound.nameserver}\noptions timeout:2\n` },
      ])
    }
    return boxOf(engine, cell, bound, link, root)
  } catch (error) {
    await engine.destroy(cell)
    await link.close()
    throw error
  }
}

export async function bind(harness: Harness, cell: Cell, options: BoxOptions = {}): Promise<Bound> {
  return harness.engine.bind(cell, {
    root: options.root ?? (await harness.newRoot()),
    hostname: options.hostname ?? cell.id,
    limits: options.limits ?? LIMITS,
    network: options.network ?? { enabled: false },
    memory: options.memory,
    ahead: options.ahead,
  })
}

/** The host process of the sandbox: the guest, or gVisor's kernel. */
export async function firstProcess(harness: Harness, id: string): Promise<ProcessIdentity> {
  return (await recordOf(harness, id)).process!
}

export async function recordOf({ instance }: Harness, id: string): Promise<CellRecord> {
  return JSON.parse(await readFile(join(instance.runDir, 's', id, 'cell.json'), 'utf8'))
}

export function boxOf(engine: Engine, cell: Cell, bound: Bound, link: TestLink, root: Root): Box {
  const cwd = bound.workspace
  return {
    cell,
    bound,
    link,
    root,
    run: (command, options) => link.run(command, { ...(cwd && { cwd }), ...options }),
    print: (command, options) => link.print(command, { ...(cwd && { cwd }), ...options }),
    async [Symbol.asyncDispose]() {
      await engine.destroy(cell)
      await link.close()
    },
  }
}
