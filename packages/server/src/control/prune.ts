// Removes unused things on request: images, records of stopped sandboxes with their output and, only with `checkpoints`, their
// checkpoints. Each is removed by the part that owns it.
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
  /** Undefined if other servers share the images: this one cannot know which are used. */
  images: Images | undefined
  /** A directory per sandbox. */
  outputDir: string
}

interface Plan extends Omit<Pruned, 'dryRun' | 'images'> {
  /** Directories of output of stopped sandboxes. */
  output: string[]
}

export class Pruning {
  readonly #options: PruningOptions

  constructor(options: PruningOptions) {
    this.#options = options
  }

  /** With `dryRun` it only tells what it would remove. */
  async prune(input: PruneParsed, options: { signal?: AbortSignal } = {}): Promise<Pruned> {
    const { fleet } = this.#options
    const { dryRun = false } = input
    // Images first: a dry run does not count an image that only an unused checkpoint holds.
    const images = await this.#images({ dryRun, unusedMs: input.olderThan })
    const plan = await this.#plan(input)
    if (!dryRun) await this.#carryOut(plan, options.signal)
    // Not awaited: shrinking may have to move data.
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
    const stopped = fleet.table.stoppedBy(until)
    const sandboxes = stopped.filter((id) => !owners.has(id))
    const isStopped = new Set(stopped)
    const output: string[] = []
    let freedBytes = leaving.reduce((sum, { sizeBytes }) => sum + (sizeBytes ?? 0), 0)
    for (const name of await readdir(outputDir).catch(() => [])) {
      const isMeant = isStopped.has(name) || fleet.table.get(name) === undefined
      if (!isMeant || !isId('sandbox', name)) continue
      output.push(name)
      freedBytes += await directoryBytes(join(outputDir, name))
    }
    return { checkpoints: leaving, sandboxes, output, freedBytes }
  }

  async #images(options: {
    dryRun: boolean
    /** For images of packages. */
    unusedMs: number | undefined
  }): Promise<Pick<Pruned, 'freedBytes'> & { removed: Pruned['images'] }> {
    const { images } = this.#options
    if (!images) return { removed: [], freedBytes: 0 }
    const sizes = new Map((await images.list()).map(({ name, sizeBytes }) => [name, sizeBytes]))
    const { removed, freedBytes } = await images.collect(options)
    return { removed: removed.map((name) => ({ name, sizeBytes: sizes.get(name) ?? 0 })), freedBytes }
  }

  /** Removing a record also removes thousands of events, so other work runs in between. */
  async #carryOut(plan: Plan, signal: AbortSignal | undefined): Promise<void> {
    const { fleet, checkpoints, outputDir } = this.#options
    for (const { id, sandboxId } of plan.checkpoints) {
      signal?.throwIfAborted()
      await checkpoints.delete(sandboxId, id).catch(unlessGone)
    }
    for (const name of plan.output) await rm(join(outputDir, name), { recursive: true, force: true })
    for (const id of plan.sandboxes) {
      signal?.throwIfAborted()
      // In its turn: a sandbox that was just stopped may still be cleaning up.
      await fleet.inTurn(id, async () => {
        if (fleet.table.get(id)?.status === 'stopped') fleet.table.remove(id)
      })
      await setImmediate()
    }
  }
}

/** Another call has removed it. */
function unlessGone(error: unknown): void {
  if (!(error instanceof IsletError && error.code === 'checkpoint_not_found')) throw error
}
