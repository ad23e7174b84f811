// Scripts of a checkpoint: each runs once in every sandbox made from it, in order, when the sandbox is created or resumed.
//
//   record the run with the id of its process  →  start the process  →  record its end, the run and the event together
//
// If the server is killed in between, the next one looks for that process: it runs, it has ended, or it never started.
import type { CreatePatchParsed, PatchInfo, PatchRun } from '@islet/contract'
import { IsletError, isId, LIMITS, newId, type ProcessInfo } from '@islet/contract'
import type { Beginning, Fleet, RunningSandbox, SandboxObserver } from '../../control/fleet.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Checkpoints } from '../../control/saved/checkpoints.ts'
import { type PatchRecord, type PatchRunRecord, PatchTable } from '../../db/patches.ts'
import { hasCode } from '../../lib/has-code.ts'
import { Locks } from '../../lib/locks.ts'
import type { Log } from '../../log.ts'
import { release } from '../output/kept-bytes.ts'
import type { Processes } from '../processes/processes.ts'
import { PATCH_TIMEOUT_MS, patchCommand, patchInput, whyFailed } from './patch-script.ts'

interface PatchesOptions {
  fleet: Fleet
  sandboxes: Pick<Sandboxes, 'keepAwake'>
  checkpoints: Checkpoints
  processes: Processes
  log: Log
}

export class Patches implements SandboxObserver {
  readonly #options: PatchesOptions
  readonly #table: PatchTable
  /** One patch at a time in each sandbox. */
  readonly #turns = new Locks()

  constructor(options: PatchesOptions) {
    this.#options = options
    this.#table = new PatchTable(options.fleet.db)
    options.fleet.observe(this)
  }

  create(checkpointId: string, { script, description }: CreatePatchParsed): PatchInfo {
    this.#options.checkpoints.record(checkpointId)
    if (this.#table.list(checkpointId).length >= LIMITS.patches)
      throw new IsletError('limit_exceeded', `A checkpoint has at most ${LIMITS.patches} patches.`)
    const patch = { id: newId('patch'), checkpointId, script, description: description ?? null }
    return toInfo(this.#table.insert({ ...patch, createdAt: Date.now() }))
  }

  list(checkpointId: string): PatchInfo[] {
    this.#options.checkpoints.record(checkpointId)
    return this.#table.list(checkpointId).map(toInfo)
  }

  /** Sandboxes that already ran the patch keep its effects. */
  delete(checkpointId: string, id: string): void {
    this.#options.checkpoints.record(checkpointId)
    if (!isId('patch', id) || !this.#table.remove(checkpointId, id)) throw new IsletError('patch_not_found')
  }

  /** The runs in this sandbox in order, then the pending patches. */
  runs(sandboxId: string): PatchRun[] {
    const { patchesOf } = this.#options.fleet.record(sandboxId)
    const runs = this.#table.runs(sandboxId)
    const begun = new Set(runs.map(({ patchId }) => patchId))
    const pending = patchesOf === null ? [] : this.#table.list(patchesOf).filter(({ id }) => !begun.has(id))
    return [...runs.map(toRun), ...pending.map(({ id }) => ({ ...PENDING, patchId: id }))]
  }

  /** Resolves when all patches that can be applied are. Users of the sandbox wait for that too. */
  began({ record }: RunningSandbox, how: Beginning): Promise<void> | undefined {
    const { id } = record
    // A sandbox made from an image has no checkpoint.
    if (how === 'created' || !this.#hasWork(id)) return
    const leave = this.#options.sandboxes.keepAwake(id)
    const work = this.#turns
      .run([id], () => this.#apply(id, how))
      .catch((error) => this.#options.log.error({ error, sandbox: id }, 'patches not applied'))
      .finally(leave)
    return this.#options.fleet.settle(id, work)
  }

  async gone(): Promise<void> {}

  #hasWork(id: string): boolean {
    return this.#next(id) !== undefined || this.#table.runs(id).some(({ status }) => status === 'running')
  }

  async #apply(id: string, how: Beginning): Promise<void> {
    for (const run of this.#table.runs(id)) if (run.status === 'running') await this.#goOn(id, run, how)
    for (let next = this.#next(id); next; next = this.#next(id)) if (!(await this.#run(id, next))) return
  }

  /** Undefined: all are applied, or one failed and blocks the rest, or the sandbox does not run. */
  #next(id: string): PatchRecord | undefined {
    const { fleet } = this.#options
    const record = fleet.table.get(id)
    if (fleet.closed || record?.status !== 'running' || record.patchesOf === null) return
    const statuses = new Map(this.#table.runs(id).map(({ patchId, status }) => [patchId, status]))
    const next = this.#table.list(record.patchesOf).find((patch) => statuses.get(patch.id) !== 'applied')
    return next && statuses.has(next.id) ? undefined : next
  }

  /** False: it could not be started and stays pending. */
  async #run(id: string, patch: PatchRecord): Promise<boolean> {
    const { processes } = this.#options
    const processId = newId('process')
    const run: PatchRunRecord = { ...BEGUN, patchId: patch.id, processId, at: Date.now() }
    this.#table.saveRun(id, run)
    const exec = {
      command: patchCommand(patch.id, processId),
      stdin: patchInput(processId, patch.script),
      user: 'root',
      timeout: PATCH_TIMEOUT_MS,
      maxOutputBytes: LIMITS.patchOutputBytes,
    }
    try {
      const { result, output } = await processes.commands.capture(id, exec, { processId })
      release(output)
      this.#ended(id, run, { result })
    } catch (error) {
      const code = error instanceof IsletError ? error.code : undefined
      // The next server finds out whether it was started.
      if (this.#options.fleet.closed || code === 'draining') return false
      if (code === 'invalid_state') {
        this.#table.removeRun(id, patch.id)
        return false
      }
      this.#ended(id, run, { reason: asReason(error) })
    }
    return true
  }

  /** Continues a run that another server began, or this one before the sandbox was suspended. */
  async #goOn(id: string, run: PatchRunRecord, how: Beginning): Promise<void> {
    if (run.processId === null) return this.#ended(id, run, { reason: COPIED })
    const process = await this.#follow(id, run)
    if (this.#options.fleet.closed) return
    if (process?.status === 'running') throw new Error('The process of a patch could not be followed.')
    if (process?.status === 'exited') return this.#ended(id, run, { result: process.result })
    // After `adopted` the guest is the same and knows every process that was started.
    const neverRan = process === undefined || how === 'adopted'
    if (!neverRan) return this.#ended(id, run, { reason: LOST })
    const patch = this.#table.get(run.patchId)
    if (patch) await this.#run(id, patch)
    else this.#table.removeRun(id, run.patchId)
  }

  /** Waits for its end; undefined: the process does not exist. */
  async #follow(id: string, { processId, patchId }: PatchRunRecord): Promise<ProcessInfo | undefined> {
    const { processes } = this.#options
    try {
      const { status } = await processes.get(id, processId!, { waitMs: 1 })
      const script = this.#table.get(patchId)?.script
      // The last server may have been killed while it sent the script; a process that has all of it ignores this.
      if (status === 'running' && script !== undefined)
        processes
          .writeStdin(id, processId!, Buffer.from(`\0${patchInput(processId!, script)}`), { end: true })
          .catch(() => {})
      return await processes.waitEnd(id, processId!)
    } catch (error) {
      if (hasCode(error, 'process_not_found')) return undefined
      throw error
    }
  }

  #ended(
    id: string,
    run: PatchRunRecord,
    { result = null, reason = null }: { result?: ProcessInfo['result']; reason?: string | null },
  ): void {
    const { fleet, processes } = this.#options
    const why = reason ?? whyFailed(result)
    const status = result?.exitCode === 0 ? 'applied' : 'failed'
    const output = run.processId === null ? '' : processes.tail(id, run.processId, LIMITS.patchOutputBytes)
    const exitCode = result?.exitCode ?? null
    fleet.db.transaction(() => {
      this.#table.saveRun(id, { ...run, status, exitCode, output, reason: why, at: Date.now() })
      // A stopped sandbox gets no more events.
      if (fleet.table.get(id)?.status === 'stopped') return
      if (status === 'applied') fleet.events.add(id, 'patch.applied', { patchId: run.patchId })
      else fleet.events.add(id, 'patch.failed', { patchId: run.patchId, exitCode, reason: why })
    })
  }
}

const BEGUN = { status: 'running', exitCode: null, output: '', reason: null } as const
const PENDING = { status: 'pending', exitCode: null, output: '', reason: null, at: null } as const
const LOST = 'The sandbox ended while it ran.'
const COPIED = 'It was running in the sandbox that this one was copied from.'

function asReason(error: unknown): string {
  if (!(error instanceof IsletError)) return `It could not be run: ${(error as Error).message}`
  if (error.code === 'command_not_found') return 'There is no bash in the sandbox.'
  return error.message
}

function toRun({ processId: _, at, ...run }: PatchRunRecord): PatchRun {
  return { ...run, at: new Date(at).toISOString() }
}

function toInfo(record: PatchRecord): PatchInfo {
  return { ...record, createdAt: new Date(record.createdAt).toISOString() }
}
