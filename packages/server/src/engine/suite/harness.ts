// What a test needs to make sandboxes of an engine, and to take everything away again.
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Instance } from '../../instance.ts'
import type { BindOptions, Bound, Engine, PrepareOptions, Root, Shell } from '../engine.ts'
import type { ProcessIdentity } from '../proc.ts'
import type { ShellRecord } from '../shells.ts'
import { type Result, type RunOptions, TestLink } from './link.ts'

export interface Harness {
  readonly engine: Engine
  readonly instance: Instance
  /** An empty layer over the test image. */
  newRoot(): Promise<Root>
  /** A copy of a root's layer over the same image. Only with `memoryCheckpoint`. */
  copyRoot?(root: Root): Promise<Root>
  /** Lets go of the engine as a dying server would, and makes another one; it is not started. */
  restart(): Promise<Engine>
  /** Takes everything away. */
  close(): Promise<void>
}

export type BoxOptions = Partial<Omit<BindOptions, 'root'>> & PrepareOptions & { root?: Root }

/** A sandbox: a bound shell and a link to its guest. */
export interface Box extends AsyncDisposable {
  shell: Shell
  bound: Bound
  link: TestLink
  root: Root
  run(command: string | readonly string[], options?: RunOptions): Promise<Result>
  /** What it printed; a failure is an error. */
  print(command: string | readonly string[], options?: RunOptions): Promise<string>
}

export const LIMITS = { memoryBytes: 256 * 1024 * 1024, cpuMillis: 1000, pids: 128 }

export function newId(): string {
  return `sh-${randomBytes(5).toString('hex')}`
}

export async function openBox(harness: Harness, options: BoxOptions = {}): Promise<Box> {
  const { engine } = harness
  const shell = await engine.allocate(newId())
  const link = await TestLink.listen(join(shell.linkDir, 'link.sock'))
  try {
    await engine.prepare(shell, { background: options.background })
    const root = options.root ?? (await harness.newRoot())
    const bound = await bind(harness, shell, { ...options, root })
    await link.ready()
    if (bound.nameserver) {
      await link.setup([
        { path: '/etc/resolv.conf', content: `nameserver ${bound.nameserver}\noptions timeout:2\n` },
      ])
    }
    return boxOf(engine, shell, bound, link, root)
  } catch (error) {
    await engine.destroy(shell)
    await link.close()
    throw error
  }
}

export async function bind(harness: Harness, shell: Shell, options: BoxOptions = {}): Promise<Bound> {
  return harness.engine.bind(shell, {
    root: options.root ?? (await harness.newRoot()),
    hostname: options.hostname ?? shell.id,
    limits: options.limits ?? LIMITS,
    network: options.network ?? { enabled: false },
    memory: options.memory,
    ahead: options.ahead,
  })
}

/** Of the machine: the guest, or the kernel it runs in. */
export async function firstProcess(harness: Harness, id: string): Promise<ProcessIdentity> {
  return (await recordOf(harness, id)).process!
}

export async function recordOf({ instance }: Harness, id: string): Promise<ShellRecord> {
  return JSON.parse(await readFile(join(instance.runDir, 's', id, 'shell.json'), 'utf8'))
}

export function boxOf(engine: Engine, shell: Shell, bound: Bound, link: TestLink, root: Root): Box {
  const cwd = bound.workspace
  return {
    shell,
    bound,
    link,
    root,
    run: (command, options) => link.run(command, { ...(cwd && { cwd }), ...options }),
    print: (command, options) => link.print(command, { ...(cwd && { cwd }), ...options }),
    async [Symbol.asyncDispose]() {
      await engine.destroy(shell)
      await link.close()
    },
  }
}
