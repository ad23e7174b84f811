// Removes what nothing uses, when somebody asks for it: images, records of sandboxes that are gone with what is left of their
// output, and, only if told to, their checkpoints. Each is removed by the part that owns it.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { IsletError, isId, type Pruned, type PruneParsed } from '@islet/contract'
import { CheckpointTable } from '../db/checkpoints.ts'
import type { Images } from '../image/image.ts'
import { directoryBytes } from '../storage/directories.ts'
import type { Fleet } from './fleet.ts'
import type { Checkpoints } from './saved/checkpoints.ts'

interface PruningOptions {
  fleet: Fleet
  checkpoints: Checkpoints
  /** Undefined: other servers use them too, and only they know for what. */
  images: Images | undefined
  /** A directory per sandbox. */
  outputDir: string
}

interface Plan extends Omit<Pruned, 'dryRun' | 'images'> {
  /** Directories of kept output whose sandbox is gone: a crash came between its end and theirs. */
  output: string[]
}

export class Pruning {
  readonly #options: PruningOptions

  constructor(options: PruningOptions) {
    this.#options = options
  }

  /** What it says with `dryRun` is what it removes without, if nothing happens in between. */
  async prune(input: PruneParsed, options: { signal?: AbortSignal } = {}): Promise<Pruned> {
    const { fleet } = this.#options
    const { dryRun = false } = input
    // First: an image that only one of the checkpoints holds was not promised to go.
    const images = await this.#images({ dryRun })
    const plan = await this.#plan(input)
    if (!dryRun) await this.#carryOut(plan, options.signal)
    // Nobody waits for it: it may have to move what is left.
    if (!dryRun)
      fleet.storage.giveBack().catch((error) => fleet.log.warn({ error }, 'the pool did not shrink'))
    const { checkpoints, sandboxes } = plan
    const freedBytes = plan.freedBytes + images.freedBytes
    return { dryRun, images: images.removed, checkpoints, sandboxes, freedBytes }
  }

  async #plan(input: PruneParsed): Promise<Plan> {
    const { fleet, outputDir } = this.#options
    const until = Date.now() - (input.olderThan ?? 0)
    const table = new CheckpointTable(fleet.db)
    const leaving = (input.checkpoints ? table.unused(until) : []).map(
      ({ id, sandboxId, name, sizeBytes }) => ({ id, sandboxId, name, sizeBytes }),
    )
    // The record of a sandbox with a checkpoint is kept: it tells what the checkpoint is of.
    const owners = table.owners(new Set(leaving.map(({ id }) => id)))
    const sandboxes = fleet.table.stoppedBy(until).filter((id) => !owners.has(id))
    const output: string[] = []
    let freedBytes = leaving.reduce((sum, { sizeBytes }) => sum + (sizeBytes ?? 0), 0)
    for (const name of await readdir(outputDir).catch(() => [])) {
      const isPresent = (fleet.table.get(name)?.status ?? 'stopped') !== 'stopped'
      if (isPresent || !isId('sandbox', name)) continue
      output.push(name)
      freedBytes += await directoryBytes(join(outputDir, name))
    }
    return { checkpoints: leaving, sandboxes, output, freedBytes }
  }

  async #images(options: {
    dryRun: boolean
  }): Promise<Pick<Pruned, 'freedBytes'> & { removed: Pruned['images'] }> {
    const { images } = this.#options
    if (!images) return { removed: [], freedBytes: 0 }
    const sizes = new Map((await images.list()).map(({ name, sizeBytes }) => [name, sizeBytes]))
    const { removed, freedBytes } = await images.collect(options)
    return { removed: removed.map((name) => ({ name, sizeBytes: sizes.get(name) ?? 0 })), freedBytes }
  }

  /** Others have their turn in between: with each record go thousands of events. */
  async #carryOut(plan: Plan, signal: AbortSignal | undefined): Promise<void> {
    const { fleet, checkpoints, outputDir } = this.#options
    for (const { id, sandboxId } of plan.checkpoints) {
      signal?.throwIfAborted()
      await checkpoints.delete(sandboxId, id).catch(unlessGone)
    }
    for (const name of plan.output) await rm(join(outputDir, name), { recursive: true, force: true })
    for (const id of plan.sandboxes) {
      signal?.throwIfAborted()
      // In its turn: one that was stopped just now may not have let go of everything yet.
      await fleet.inTurn(id, async () => {
        if (fleet.table.get(id)?.status === 'stopped') fleet.table.remove(id)
      })
      await setImmediate()
    }
  }
}

/** Somebody else was faster. */
function unlessGone(error: unknown): void {
  if (!(error instanceof IsletError && error.code === 'checkpoint_not_found')) throw error
}
