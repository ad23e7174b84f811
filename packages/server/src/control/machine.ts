// One live sandbox: its shell, its layer and its link, made and taken away together.
import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type CreateSandboxParsed, IsletError, newId } from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'
import type { Bound, Engine, Shell } from '../engine/engine.ts'
import type { SetupFile } from '../guest/guest.ts'
import { type Link, listenLink } from '../guest/link.ts'
import type { Log } from '../log.ts'
import { directoryBytes } from '../storage/usage.ts'

/** How long a started guest may take to dial. Ordinary is a few milliseconds; a loaded machine may need seconds. */
const CONNECT_TIMEOUT_MS = 20_000
/** A file of memory may be a little larger than what was in memory. */
const FILE_SLACK = 1.25
/** How often one that does not answer is looked at. */
const ALIVE_POLL_MS = 20

export interface MachineParts {
  engine: Engine
  log: Log
}

export interface Machine {
  shell: Shell
  guest: Link
  bound: Bound
  /** Kills by the memory limit that have been reported already. */
  oomKillsSeen: number
  /** What every command inside finds in its environment besides the sandbox's own. */
  env: Record<string, string>
  /** Until then `env` is not complete. */
  envReady?: Promise<void>
  /** Ports inside that are ours and not the user's. */
  ownPorts: Set<number>
  /** It stands still: paused, hibernated, or about to be. */
  suspended: boolean
  /** The observers of this server know it. */
  hasBegun: boolean
}

export interface StartOptions {
  /** Resolves when the layer is there; it is made while the shell starts. */
  layer?: Promise<unknown>
  /** What `saveMemory` wrote: what ran then goes on. */
  memory?: string
  /** The link that the memory was saved without; everybody who waits on it goes on waiting. */
  link?: Link
  /** The shell, when it was started before. */
  shell?: Promise<WaitingShell>
}

/** A shell that has no root yet. */
export interface WaitingShell {
  shell: Shell
  guest: Link
}

/** Starts a shell and gives it its root. On an error nothing of it is left but the layer. */
export async function startMachine(
  parts: MachineParts,
  record: SandboxRecord,
  options: StartOptions = {},
): Promise<Machine> {
  const { engine } = parts
  // Awaited below, after the shell; a rejection in the meantime is not unhandled.
  options.layer?.catch(() => {})
  let waiting: WaitingShell | undefined
  try {
    waiting = await (options.shell ?? startShell(parts, record.shell, options.link))
    const { shell, guest: link } = waiting
    await options.layer
    if (options.memory) await assertFits(options.memory, record.resources)
    const bound = await engine.bind(shell, {
      root: record.root,
      hostname: record.id,
      limits: record.resources,
      network: record.network,
      memory: options.memory,
    })
    await link.ready({ timeoutMs: CONNECT_TIMEOUT_MS })
    if (engine.capabilities.wall === true) await link.setup(machineFiles(record, bound))
    return newMachine(shell, link, bound)
  } catch (error) {
    await options.layer?.catch(() => {})
    if (waiting) await stopMachine(parts, waiting)
    throw error
  }
}

/** What does not fit would end at once, and say nothing of why. */
async function assertFits(memory: string, { memoryBytes }: SandboxRecord['resources']): Promise<void> {
  const neededBytes = await directoryBytes(memory)
  if (neededBytes <= memoryBytes * FILE_SLACK) return
  const needed = Math.ceil(neededBytes / 2 ** 20)
  throw new IsletError('bad_request', `What ran in it needs about ${needed}Mi of memory.`, {
    hint: `Give it more with resources.memory; it would have ${Math.floor(memoryBytes / 2 ** 20)}Mi.`,
    details: { neededBytes, memoryBytes },
  })
}

async function startShell(parts: MachineParts, id: string, link?: Link): Promise<WaitingShell> {
  const shell = await parts.engine.allocate(id)
  let guest = link
  try {
    if (guest) await guest.resume(socketOf(shell))
    else guest = await listen(parts, shell)
    await parts.engine.prepare(shell)
    return { shell, guest }
  } catch (error) {
    await stopMachine(parts, { shell, guest })
    throw error
  }
}

/** A shell that is started before it is known what its root will be. One that nobody took goes with it. */
export class ShellAhead implements AsyncDisposable {
  readonly id = newId('shell')
  readonly #parts: MachineParts
  #waiting: Promise<WaitingShell> | undefined

  constructor(parts: MachineParts) {
    this.#parts = parts
    this.#waiting = startShell(parts, this.id)
    this.#waiting.catch(() => {})
  }

  take(): Promise<WaitingShell> | undefined {
    const waiting = this.#waiting
    this.#waiting = undefined
    return waiting
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const waiting = await this.take()?.catch(() => undefined)
    if (waiting) await stopMachine(this.#parts, waiting)
  }
}

function newMachine(shell: Shell, guest: Link, bound: Bound): Machine {
  return {
    shell,
    guest,
    bound,
    oomKillsSeen: 0,
    env: {},
    ownPorts: new Set(),
    suspended: false,
    hasBegun: false,
  }
}

/** Takes the place of the server that made this machine; the guest redials by itself. */
export async function adoptMachine(parts: MachineParts, record: SandboxRecord): Promise<Machine> {
  const shell = await parts.engine.adopt(record.shell)
  const link = await listen(parts, shell)
  await parts.engine.ownSocket(shell)
  const { oomKills } = await parts.engine.usage(shell).catch(() => ({ oomKills: 0 }))
  return { ...newMachine(shell, link, {}), oomKillsSeen: oomKills }
}

/** Whether one that was just thawed goes on. What is killed while it is frozen may die only then. */
export async function goesOn({ engine }: MachineParts, { shell, guest }: Machine): Promise<boolean> {
  const isBack = () => guest.ready({ timeoutMs: CONNECT_TIMEOUT_MS })
  const answers = (guest.connected ? guest.ping().catch(isBack) : isBack()).then(
    () => true,
    () => false,
  )
  const deadline = performance.now() + CONNECT_TIMEOUT_MS
  while (performance.now() < deadline) {
    if (await Promise.race([answers, setTimeout(ALIVE_POLL_MS, false, { ref: false })])) return true
    if (!(await engine.alive(shell).catch(() => true))) return false
  }
  return true
}

/** The layer stays. */
export async function stopMachine(
  parts: MachineParts,
  machine: { shell: Shell; guest?: Link },
): Promise<void> {
  machine.guest?.lost('it was stopped')
  await machine.guest?.close()
  await parts.engine.destroy(machine.shell)
}

/** The caller's directory and files; answers with the absolute working directory. */
export async function settleMachine(
  machine: Machine,
  record: SandboxRecord,
  input: CreateSandboxParsed,
): Promise<string> {
  const { guest, bound } = machine
  const home = bound.workspace ?? '/'
  const workdir = posix.resolve(home, record.workdir || home)
  const owner = record.user || undefined
  // Also looks the user up: a sandbox whose commands could not run is not made.
  if (input.workdir !== undefined || input.user !== undefined)
    await guest.mkdir(workdir, { parents: true, owner })
  for (const file of input.files ?? []) {
    const content = Buffer.from(file.content, file.encoding)
    const options = { mode: file.mode, owner: file.owner ?? owner, parents: true }
    await guest.write(posix.resolve(workdir, file.path), chunks(content), options)
  }
  return workdir
}

async function* chunks(bytes: Buffer): AsyncGenerator<Buffer> {
  const size = 256 * 1024
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function listen(parts: MachineParts, shell: Shell): Promise<Link> {
  const socketPath = socketOf(shell)
  await rm(socketPath, { force: true })
  return listenLink({ socketPath, log: parts.log })
}

const socketOf = (shell: Shell): string => join(shell.linkDir, 'link.sock')

/** What a root must hold before the first command: who and where it is. */
function machineFiles(record: SandboxRecord, bound: Bound): SetupFile[] {
  const hosts = [
    '127.0.0.1 localhost',
    '::1 localhost ip6-localhost',
    `${bound.address ?? '127.0.1.1'} ${record.id}`,
  ]
  const machineId = createHash('sha256').update(record.id).digest('hex').slice(0, 32)
  const file = (path: string, content: string): SetupFile => ({ path, content, mode: 0o644, owner: '0:0' })
  return [
    file('/etc/hostname', `${record.id}\n`),
    file('/etc/hosts', `${hosts.join('\n')}\n`),
    file('/etc/machine-id', `${machineId}\n`),
    file(
      '/etc/resolv.conf',
      bound.nameserver ? `nameserver ${bound.nameserver}\noptions timeout:2 attempts:2\n` : '',
    ),
  ]
}

/** An engine's or storage's failure as callers should see it. */
export function asStartError(error: unknown): IsletError {
  if (error instanceof IsletError) return error
  const cause = error as { message?: string }
  if (isFull(error)) return new IsletError('server_disk_full', undefined, { cause: error })
  return new IsletError(
    'engine_unavailable',
    `The sandbox could not be started: ${cause?.message ?? error}`,
    { cause: error },
  )
}

/** A full disk has a code; what else the storage fails with is ours. */
export function asStorageError(error: unknown): unknown {
  return isFull(error) ? new IsletError('server_disk_full', undefined, { cause: error }) : error
}

function isFull(error: unknown): boolean {
  const { kind, code } = (error ?? {}) as { kind?: string; code?: string }
  return kind === 'NO_SPACE' || code === 'ENOSPC'
}
