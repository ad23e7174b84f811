// A sandbox without a record, in which packages are installed. It has the network and its own limits, and nothing of other sandboxes.
// No row names its cell and its layer, so after a crash the next start removes both.
import { newId } from '@islet/contract'
import type { SandboxRecord } from '../../db/sandboxes.ts'
import type { Guest } from '../../guest/guest.ts'
import type { Image } from '../../image/image.ts'
import { asStartError } from '../errors.ts'
import type { Fleet } from '../fleet.ts'
import { type Machine, startMachine } from '../machine.ts'
import { newRecord } from '../record.ts'
import { assertSupported } from '../supported.ts'
import { deleteLayer, stopCell } from '../warm/cells.ts'
import { Tail } from './tail.ts'

const GIB = 2 ** 30
const RESOURCES = { memoryBytes: 2 * GIB, cpuMillis: 4000, diskBytes: 10 * GIB, pids: 4096 }
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
export const ROOT = '0:0'

export interface Ran {
  exitCode: number
  /** The last lines of its output. */
  lines: string[]
}

interface RunOptions {
  /** Default: root. */
  user?: string
  env?: Record<string, string>
  onLine?: (line: string) => void
}

export class Builder implements AsyncDisposable {
  readonly guest: Guest
  readonly #fleet: Fleet
  readonly #record: SandboxRecord
  readonly #machine: Machine
  readonly #signal: AbortSignal
  readonly #onAbort = () => void this.stop()
  #stopping: Promise<void> | undefined

  /** Once the signal aborts, the builder ends and everything that runs in it fails. */
  static async start(fleet: Fleet, image: Image, signal: AbortSignal): Promise<Builder> {
    const { capacity, engine, storage, warm } = fleet
    const { capabilities } = engine
    const network = { enabled: true }
    assertSupported({ network }, capabilities)
    const resources = capacity.lower(RESOURCES)
    await using claim = warm.claim()
    const made = newRecord({ network }, { runtime: image.name, image, capabilities, capacity })
    const record: SandboxRecord = { ...made, resources, cell: claim.id }
    const { layer } = record.root
    const created = storage.create(layer, { limitBytes: resources.diskBytes })
    try {
      const machine = await startMachine(fleet, record, claim, { layer: created })
      return new Builder(fleet, record, machine, signal)
    } catch (error) {
      await created.catch(() => {})
      await deleteLayer(fleet, layer)
      throw asStartError(error)
    }
  }

  private constructor(fleet: Fleet, record: SandboxRecord, machine: Machine, signal: AbortSignal) {
    this.#fleet = fleet
    this.#record = record
    this.#machine = machine
    this.#signal = signal
    this.guest = machine.guest
    if (signal.aborted) this.#onAbort()
    else signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  async run(argv: readonly string[], { user = ROOT, env, onLine }: RunOptions = {}): Promise<Ran> {
    this.#signal.throwIfAborted()
    const tail = new Tail(onLine)
    const spec = {
      id: newId('process'),
      argv,
      env: { PATH, LANG: 'C.UTF-8', ...this.#record.env, ...env },
      cwd: '/',
      user,
      stdin: false,
      endsSession: true,
    }
    try {
      const process = await this.guest.spawn(spec, { write: (channel, bytes) => tail.push(channel, bytes) })
      const { code } = await process.exited
      process.forget()
      return { exitCode: code, lines: tail.end() }
    } catch (error) {
      this.#signal.throwIfAborted()
      throw error
    }
  }

  /** The files that changed in one tree. Call it after `stop`. */
  treePath(tree: string): string {
    return this.#fleet.storage.treePath(this.#record.root.layer, tree)
  }

  /** Ends its processes; its layer stays. */
  stop(): Promise<void> {
    this.#signal.removeEventListener('abort', this.#onAbort)
    this.#stopping ??= stopCell(this.#fleet, this.#machine)
    return this.#stopping
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    await deleteLayer(this.#fleet, this.#record.root.layer)
  }
}
