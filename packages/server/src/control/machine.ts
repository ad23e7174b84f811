// The live part of a sandbox: its cell and its link.
import { posix } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type CreateSandboxParsed, IsletError } from '@islet/contract'
import type { SandboxRecord } from '../db/sandboxes.ts'
import type { BindOptions, Bound, Cell } from '../engine/engine.ts'
import type { Link } from '../guest/link.ts'
import { directoryBytes } from '../storage/directories.ts'
import { etcFiles, writeEtc } from './etc.ts'
import { writeGiven } from './given-files.ts'
import {
  type CellClaim,
  type CellParts,
  CONNECT_TIMEOUT_MS,
  listen,
  stopCell,
  type WaitingCell,
} from './warm/cells.ts'

/** Saved memory may be a little larger on disk than it was in memory. */
const FILE_SLACK = 1.25
/** How often a guest that does not answer is checked. */
const ALIVE_POLL_MS = 20

export interface Machine {
  cell: Cell
  guest: Link
  bound: Bound
  /** Kills by the memory limit that have been reported already. */
  oomKillsSeen: number
  /** When programs inside were last shown how much memory is free (`performance.now`). */
  shownAt: number
  /** Environment of every command, besides the sandbox's own. */
  env: Record<string, string>
  /** Resolves when `env` is complete. */
  envReady?: Promise<void>
  /** Ports inside that Islet itself listens on. */
  ownPorts: Set<number>
  /** Paused or hibernated, or about to be. */
  suspended: boolean
  /** The observers of this server have been told of it. */
  hasBegun: boolean
}

export interface StartOptions {
  /** Resolves when the layer exists; it is made while the cell starts. */
  layer?: Promise<unknown>
  /** A directory that `saveMemory` wrote: its processes continue. */
  memory?: string
  /** Runs before the machine is returned. */
  tell?: (machine: Machine) => Promise<void>
}

/** Gives the cell that the record names its root. On an error only the layer is left. */
export async function startMachine(
  parts: CellParts,
  record: SandboxRecord,
  claim: CellClaim,
  options: StartOptions = {},
): Promise<Machine> {
  // Awaited below, after the cell. A rejection before that must not count as unhandled.
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

/** Binds root, name, limits and network, and replaces those of a prebound cell. */
export async function giveRoot(
  parts: CellParts,
  waiting: WaitingCell,
  record: Pick<SandboxRecord, 'id' | 'root' | 'resources'> & Pick<BindOptions, 'network'>,
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

/** A sandbox with too little memory for its processes would die at once, without a reason. */
async function assertFits(memory: string, { memoryBytes }: SandboxRecord['resources']): Promise<void> {
  const neededBytes = await directoryBytes(memory)
  if (neededBytes <= memoryBytes * FILE_SLACK) return
  const needed = Math.ceil(neededBytes / 2 ** 20)
  throw new IsletError('bad_request', `The saved processes need about ${needed}Mi of memory.`, {
    hint: `Raise resources.memory, which is ${Math.floor(memoryBytes / 2 ** 20)}Mi.`,
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

/** Takes over the machine of an earlier server; its guest redials by itself. */
export async function adoptMachine(parts: CellParts, record: SandboxRecord): Promise<Machine> {
  const cell = await parts.engine.adopt(record.cell)
  const link = await listen(parts, cell)
  await parts.engine.ownSocket(cell)
  const { oomKills } = await parts.engine.usage(cell).catch(() => ({ oomKills: 0 }))
  return { ...newMachine(cell, link, {}), oomKillsSeen: oomKills }
}

/** Whether a sandbox that was just thawed is alive. A process that was killed while frozen dies only when thawed. */
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

/** Makes the working directory and writes the files that the caller gave. */
export async function settleMachine(
  { guest }: Machine,
  { workdir, user }: SandboxRecord,
  input: CreateSandboxParsed,
): Promise<void> {
  const owner = user || undefined
  // Also checks that the user exists: without it no command could run.
  if (input.workdir !== undefined || input.user !== undefined)
    await guest.mkdir(workdir, { parents: true, owner })
  if (input.files) await writeGiven(guest, input.files, { directory: workdir, owner })
}
