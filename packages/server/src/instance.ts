// Several servers may run on one machine: a real one, tests, one-shot runs. Everything that is global to the machine (uid
// ranges, bridge, firewall table, cgroup, run directory) is derived from a slot that a server claims at start:
//
//   /run/islet/<slot>/owner.<generation>.json    its owner (engine/claim.ts); mkdir of the directory is the claim
//   /run/islet/<slot>/s/<cell>/                 its cells
//   <data>/server.<generation>.json              one server per data directory
//
// A data directory gets its old slot again, so that a server finds the cells it had before kill -9.
import { chmod, mkdir, readdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { IsletError } from '@islet/contract'
import { type Claim, dropClaim, isClaimAlive, readClaim, takeClaim } from './engine/claim.ts'
import { hasLife, removeCgroups, tearDown } from './engine/teardown.ts'

export interface Instance {
  /** Undefined without root: then only engine `process` works, and nothing is global. */
  slot: number | undefined
  dataDir: string
  runDir: string
  ephemeral: boolean
  uidStart: number
  uidRanges: number
  /** Also the name of the nft table and of the cgroup. */
  bridge: string
  table: string
  cgroup: string
  subnet: string
  prefix: number
  gateway: string
  /** Releases the slot. Returns false and keeps it while one of its cells is alive. */
  release(): Promise<boolean>
}

export interface ClaimOptions {
  dataDir: string
  /** Once its server is dead, the next sweep of any server destroys everything, the data directory too. */
  ephemeral?: boolean
  /** For tests of claiming: slots in another directory own no bridge, cgroup or table. */
  runRoot?: string
}

interface Owner {
  dataDir: string
  ephemeral: boolean
}

export const SLOTS = 56
export const UIDS_PER_CELL = 65_536
/** Marks an ephemeral data directory; a directory without it is never removed. */
export const EPHEMERAL_MARKER = '.islet-ephemeral'

// Above the ids of useradd, systemd and subuid; 56 slots of 1024 ranges end below 2^32.
const FIRST_UID = 268_435_456
const RANGES_PER_SLOT = 1024
const RUN_ROOT = '/run/islet'
// A server writes its owner file within milliseconds of its mkdir.
const OWNERLESS_MS = 60_000

/** Makes this process the server of `dataDir`. Code `conflict` while another server uses it. */
export async function claimInstance(options: ClaimOptions): Promise<Instance> {
  const { ephemeral = false, runRoot = RUN_ROOT } = options
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 })
  const dataDir = await realpath(options.dataDir)
  const owner = { dataDir, ephemeral }
  if (ephemeral) await markEphemeral(dataDir)
  await holdDataDir(owner)
  if (process.geteuid?.() !== 0) {
    const runDir = join(dataDir, 'run')
    await mkdir(runDir, { recursive: true, mode: 0o700 })
    return describe(undefined, runDir, owner)
  }
  // Others may pass through it (a sandbox's root must reach its own cell's directory), but not list it.
  await mkdir(runRoot, { recursive: true })
  await chmod(runRoot, 0o711)
  const slot = (await takeOwnSlot(runRoot, owner)) ?? (await takeFreeSlot(runRoot, owner))
  return describe(slot, join(runRoot, String(slot)), owner)
}

/** Destroys what dead ephemeral servers left, and frees slots without an owner. Returns the freed slots. */
export async function sweepDeadInstances({ runRoot = RUN_ROOT } = {}): Promise<number[]> {
  const swept: number[] = []
  for (const slot of await slotsIn(runRoot)) {
    if (await sweepSlot(runRoot, slot)) swept.push(slot)
  }
  return swept
}

function describe(slot: number | undefined, runDir: string, owner: Owner): Instance {
  const n = slot ?? 0
  const name = `islet${n}`
  return {
    slot,
    dataDir: owner.dataDir,
    runDir,
    ephemeral: owner.ephemeral,
    uidStart: FIRST_UID + n * RANGES_PER_SLOT * UIDS_PER_CELL,
    uidRanges: RANGES_PER_SLOT,
    bridge: name,
    table: name,
    cgroup: name,
    subnet: `10.${231 - n}.0.0`,
    prefix: 16,
    gateway: `10.${231 - n}.0.1`,
    release: () => release(slot, runDir, owner.dataDir),
  }
}

/** The name of bridge, table and cgroup of the slot at `runDir`. */
function globalName(runDir: string): string | undefined {
  return dirname(runDir) === RUN_ROOT ? `islet${basename(runDir)}` : undefined
}

async function release(slot: number | undefined, runDir: string, dataDir: string): Promise<boolean> {
  if (await hasLife({ name: globalName(runDir), runDir })) return false
  await removeCgroups(globalName(runDir))
  if (slot !== undefined) await removeSlot(runDir)
  else await rm(runDir, { recursive: true, force: true })
  await dropClaim(dataDir, 'server')
  return true
}

async function markEphemeral(dataDir: string): Promise<void> {
  const entries = await readdir(dataDir)
  if (entries.includes(EPHEMERAL_MARKER)) return
  if (entries.length > 0) {
    throw new IsletError(
      'conflict',
      `${dataDir} is not empty, so it cannot become an ephemeral data directory.`,
    )
  }
  await writeFile(join(dataDir, EPHEMERAL_MARKER), 'Islet removes this directory when its server is gone.\n')
}

async function holdDataDir(owner: Owner): Promise<void> {
  for (;;) {
    const claim = await readClaim<Owner>(owner.dataDir, 'server')
    if (isClaimAlive(claim)) {
      throw new IsletError('conflict', `A server (pid ${claim?.owner.pid}) already uses ${owner.dataDir}.`, {
        hint: 'Stop it, or set ISLET_DATA_DIR to another directory.',
      })
    }
    if (await takeClaim(owner.dataDir, 'server', owner, claim)) return
  }
}

async function takeOwnSlot(runRoot: string, owner: Owner): Promise<number | undefined> {
  for (const slot of await slotsIn(runRoot)) {
    const claim = await readSlot(runRoot, slot)
    if (claim?.value?.dataDir !== owner.dataDir || isClaimAlive(claim)) continue
    if (await takeClaim(join(runRoot, String(slot)), 'owner', owner, claim)) return slot
  }
  return undefined
}

async function takeFreeSlot(runRoot: string, owner: Owner): Promise<number> {
  for (const clean of [() => [], () => sweepDeadInstances({ runRoot }), () => freeIdleSlots(runRoot)]) {
    await clean()
    for (let slot = 0; slot < SLOTS; slot++) {
      const directory = join(runRoot, String(slot))
      if ((await makeDirectory(directory)) && (await takeClaim(directory, 'owner', owner, undefined)))
        return slot
    }
  }
  throw new IsletError('engine_unavailable', `All ${SLOTS} slots for servers on this machine are taken.`, {
    hint: `Stop servers that are not needed; ${runRoot}/*/owner.*.json names their data directories.`,
  })
}

/** Frees the slots of dead servers without a living cell; their data directories get another slot at the next start. */
async function freeIdleSlots(runRoot: string): Promise<void> {
  for (const slot of await slotsIn(runRoot)) await seizeSlot(runRoot, slot, await readSlot(runRoot, slot))
}

async function sweepSlot(runRoot: string, slot: number): Promise<boolean> {
  const runDir = join(runRoot, String(slot))
  const claim = await readSlot(runRoot, slot)
  if (isClaimAlive(claim)) return false
  if (claim?.value?.ephemeral) {
    if (!(await takeClaim(runDir, 'owner', claim.value, claim))) return false
    await tearDown({ name: globalName(runDir), runDir, dataDir: claim.value.dataDir })
    await removeEphemeral(claim.value.dataDir)
    await removeSlot(runDir)
    return true
  }
  // A server that may start again keeps its slot.
  if (claim?.value ? !(await isGone(claim.value.dataDir)) : (await ageMs(runDir)) < OWNERLESS_MS) return false
  return seizeSlot(runRoot, slot, claim)
}

/** Frees a slot whose owner is dead or unknown, unless one of its cells is alive. */
async function seizeSlot(runRoot: string, slot: number, claim: Claim<Owner> | undefined): Promise<boolean> {
  const runDir = join(runRoot, String(slot))
  if (isClaimAlive(claim) || (await hasLife({ name: globalName(runDir), runDir }))) return false
  if (!claim && (await ageMs(runDir)) < OWNERLESS_MS) return false
  const owner = claim?.value ?? { dataDir: '', ephemeral: false }
  if (!(await takeClaim(runDir, 'owner', owner, claim))) return false
  const dataDir = (await isGone(owner.dataDir)) ? owner.dataDir : undefined
  await tearDown({ name: globalName(runDir), runDir, ...(dataDir && { dataDir }) })
  await removeSlot(runDir)
  return true
}

/** The data directory was deleted, so no server can use it again; a loop device may still hold its pool. */
async function isGone(dataDir: string): Promise<boolean> {
  return stat(dataDir).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  )
}

async function removeEphemeral(dataDir: string): Promise<void> {
  const real = await realpath(dataDir).catch(() => undefined)
  if (real !== dataDir) return // gone, or replaced by a symlink
  const marked = await stat(join(dataDir, EPHEMERAL_MARKER)).catch(() => undefined)
  if (marked?.isFile()) await rm(dataDir, { recursive: true, force: true })
}

/** Renames the directory first, so that the slot is free at once. */
async function removeSlot(runDir: string): Promise<void> {
  const condemned = `${runDir}.removed-${process.pid}`
  await rename(runDir, condemned)
  await rm(condemned, { recursive: true, force: true })
}

async function readSlot(runRoot: string, slot: number): Promise<Claim<Owner> | undefined> {
  return readClaim<Owner>(join(runRoot, String(slot)), 'owner').catch(() => undefined)
}

async function slotsIn(runRoot: string): Promise<number[]> {
  const entries = await readdir(runRoot).catch(() => [])
  return entries
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((slot) => slot < SLOTS)
}

async function makeDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path)
    await chmod(path, 0o711)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

async function ageMs(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined)
  return found ? Date.now() - found.mtimeMs : 0
}
