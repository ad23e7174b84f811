// One live sandbox: its cell, its layer and its link, made and taken away together.
import { posix } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type CreateSandboxParsed, IsletError } from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'
import type { Bound, Cell } from '../engine/engine.ts'
import type { Link } from '../guest/link.ts'
import { directoryBytes } from '../storage/directories.ts'
import { etcFiles, writeEtc } from './etc.ts'
import {
  type CellClaim,
  type CellParts,
  CONNECT_TIMEOUT_MS,
  listen,
  stopCell,
  type WaitingCell,
} from './warm/cells.ts'

/** A file of memory may be a little larger than what was in memory. */
const FILE_SLACK = 1.25
/** How often one that does not answer is looked at. */
const ALIVE_POLL_MS = 20

export interface Machine {
  cell: Cell
  guest: Link
  bound: Bound
  /** Kills by the memory limit that have been reported already. */
  oomKillsSeen: number
  /** When programs inside were last shown how much memory is free (`performance.now`). */
  shownAt: number
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
  /** Resolves when the layer is there; it is made while the cell starts. */
  layer?: Promise<unknown>
  /** What `saveMemory` wrote: what ran then goes on. */
  memory?: string
  /** Done with it before anybody has it. */
  tell?: (machine: Machine) => Promise<void>
}

/** Gives the cell that the record names its root. On an error nothing of it is left but the layer. */
export async function startMachine(
  parts: CellParts,
  record: SandboxRecord,
  claim: CellClaim,
  options: StartOptions = {},
): Promise<Machine> {
  // Awaited below, after the cell; a rejection in the meantime is not unhandled.
  options.layer?.catch(() => {})
  let waiting: WaitingCell | undefined
  try {
    waiting = await claim.take()
    const { cell, guest } = waiting
    await options.layer
    if (options.memory) await assertFits(options.memory, record.resources)
    const bound = claim.ahead?.bound ?? (await giveRoot(parts, waiting, record, options))
    const machine = newMachine(cell, guest, bound)
    claim.rooted()
    await options.tell?.(machine)
    return machine
  } catch (error) {
    await options.layer?.catch(() => {})
    if (waiting) await stopCell(parts, waiting)
    throw error
  }
}

/** Root, name, limits and network, in place of what it was given ahead. */
export async function giveRoot(
  parts: CellParts,
  waiting: WaitingCell,
  record: Pick<SandboxRecord, 'id' | 'root' | 'resources' | 'network'>,
  options: { memory?: string; ahead?: boolean } = {},
): Promise<Bound> {
  const { engine } = parts
  const { cell, guest } = waiting
  const { memory, ahead } = options
  const bound = await engine.bind(cell, {
    root: record.root,
    hostname: record.id,
    limits: record.resources,
    network: record.network,
    etc: (place) => etcFiles(record.id, place),
    memory,
    ahead,
  })
  if (waiting.ahead && !ahead) {
    parts.dropLater([waiting.ahead.layer])
    waiting.ahead = undefined
  }
  await guest.ready({ timeoutMs: CONNECT_TIMEOUT_MS })
  if (engine.capabilities.wall === true && !bound.hasEtc) await writeEtc(parts.log, guest, record.id, bound)
  return bound
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

function newMachine(cell: Cell, guest: Link, bound: Bound): Machine {
  return {
    cell,
    guest,
    bound,
    oomKillsSeen: 0,
    shownAt: Number.NEGATIVE_INFINITY,
    env: {},
    ownPorts: new Set(),
    suspended: false,
    hasBegun: false,
  }
}

/** Takes the place of the server that made this machine; the guest redials by itself. */
export async function adoptMachine(parts: CellParts, record: SandboxRecord): Promise<Machine> {
  const cell = await parts.engine.adopt(record.cell)
  const link = await listen(parts, cell)
  await parts.engine.ownSocket(cell)
  const { oomKills } = await parts.engine.usage(cell).catch(() => ({ oomKills: 0 }))
  return { ...newMachine(cell, link, {}), oomKillsSeen: oomKills }
}

/** Whether one that was just thawed goes on. What is killed while it is frozen may die only then. */
export async function goesOn({ engine }: CellParts, { cell, guest }: Machine): Promise<boolean> {
  const isBack = () => guest.ready({ timeoutMs: CONNECT_TIMEOUT_MS })
  const answers = (guest.connected ? guest.ping().catch(isBack) : isBack()).then(
    () => true,
    () => false,
  )
  const deadline = performance.now() + CONNECT_TIMEOUT_MS
  while (performance.now() < deadline) {
    if (await Promise.race([answers, setTimeout(ALIVE_POLL_MS, false, { ref: false })])) return true
    if (!(await engine.alive(cell).catch(() => true))) return false
  }
  return true
}

/** The absolute working directory. */
export function workdirOf({ bound }: Machine, record: SandboxRecord): string {
  const home = bound.workspace ?? '/'
  return posix.resolve(home, record.workdir || home)
}

/** The caller's directory and files. */
export async function settleMachine(
  { guest }: Machine,
  { workdir, user }: SandboxRecord,
  input: CreateSandboxParsed,
): Promise<void> {
  const owner = user || undefined
  // Also looks the user up: a sandbox whose commands could not run is not made.
  if (input.workdir !== undefined || input.user !== undefined)
    await guest.mkdir(workdir, { parents: true, owner })
  for (const file of input.files ?? []) {
    const content = Buffer.from(file.content, file.encoding)
    const options = { mode: file.mode, owner: file.owner ?? owner, parents: true }
    await guest.write(posix.resolve(workdir, file.path), chunks(content), options)
  }
}

async function* chunks(bytes: Buffer): AsyncGenerator<Buffer> {
  const size = 256 * 1024
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
