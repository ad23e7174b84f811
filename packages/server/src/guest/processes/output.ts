// The output of a process, from its OUTPUT frames to the sink: in order, one write at a time, each byte once.
//
//     acked ........ taken ........ received        offsets in the output sequence
//       | the sink has | waits or is   |
//       | it, untold   | being written |
import { free, useUp } from '../../wire/chunks.ts'
import { readU64 } from '../../wire/fields.ts'
import type { Frame } from '../../wire/frames.ts'
import { OUTPUT_PREFIX_BYTES } from '../connection.ts'
import { Violation } from '../errors.ts'
import type { OutputChannel, OutputSink } from '../guest.ts'
import { MAX_DATA, OUTPUT_BUFFER } from '../messages.gen.ts'
import { ByteQueue } from '../streams/queue.ts'

interface OutputEvents {
  /** `taken` moved on. */
  onTaken(): void
  /** Nothing waits or is being written. */
  onIdle(): void
  /** The sink failed; it is not called again. */
  onSinkFailed(error: unknown): void
}

export class Output {
  /** The sink has everything before this. */
  taken: number
  /** Everything before this was acknowledged to the guest. */
  acked: number
  busy = false
  readonly #sink: OutputSink
  readonly #events: OutputEvents
  readonly #queue = new ByteQueue()
  /** The channels of the bytes in the queue, as lengths: stdout positive, stderr negative. */
  #runs: number[] = []
  #received: number
  #channel: OutputChannel = 'stdout'
  #failed = false

  constructor(sink: OutputSink, offset: number, events: OutputEvents) {
    this.#sink = sink
    this.#events = events
    this.taken = offset
    this.acked = offset
    this.#received = offset
  }

  get received(): number {
    return this.#received
  }

  get idle(): boolean {
    return !this.busy && this.#queue.bytes === 0
  }

  /** A piece of an OUTPUT frame; the first one holds the prefix. */
  receive({ payload, at, length }: Frame): void {
    if (at > 0) this.#take(payload)
    else {
      const bytes = length - OUTPUT_PREFIX_BYTES
      if (bytes < 1 || bytes > MAX_DATA) throw new Violation(`an OUTPUT of ${length} bytes`)
      const channel = payload[0]
      if (channel !== 1 && channel !== 2) throw new Violation(`output on channel ${channel}`)
      if (readU64(payload, 1, 'offset') !== this.#received) throw new Violation('output at the wrong offset')
      if (this.#received + bytes - this.acked > OUTPUT_BUFFER)
        throw new Violation('more unacknowledged output than the guest may keep')
      this.#channel = channel === 1 ? 'stdout' : 'stderr'
      const output = payload.subarray(OUTPUT_PREFIX_BYTES)
      useUp(payload.buffer, OUTPUT_PREFIX_BYTES)
      this.#take(output)
    }
  }

  /** The connection is lost: the guest sends again what the sink does not have. */
  drop(): void {
    this.#queue.clear()
    this.#runs = []
  }

  /** The guest sends again, from `taken` on. */
  rewind(): void {
    this.#received = this.taken
    this.acked = this.taken
  }

  #take(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#received += bytes.length
    if (this.#failed) return
    if (this.idle) {
      this.#write(this.#channel, bytes)
      if (this.idle) this.#events.onIdle()
      return
    }
    const run = this.#channel === 'stdout' ? bytes.length : -bytes.length
    this.#queue.push(bytes)
    const last = this.#runs.at(-1)
    if (last !== undefined && last > 0 === run > 0) this.#runs[this.#runs.length - 1] = last + run
    else this.#runs.push(run)
  }

  #pump(): void {
    let at = 0
    while (!this.busy && !this.#failed && at < this.#runs.length) {
      const run = this.#runs[at]!
      const bytes = this.#queue.take(Math.abs(run))!
      this.#runs[at] = run > 0 ? run - bytes.length : run + bytes.length
      if (this.#runs[at] === 0) at++
      this.#write(run > 0 ? 'stdout' : 'stderr', bytes)
    }
    if (at > 0) this.#runs.splice(0, at)
    if (this.idle) this.#events.onIdle()
  }

  #write(channel: OutputChannel, bytes: Buffer): void {
    let written: void | Promise<void>
    this.busy = true
    try {
      written = this.#sink.write(channel, bytes, this.taken)
    } catch (error) {
      this.#fail(error)
      return
    }
    if (!written) {
      this.#onWritten(bytes)
      return
    }
    written.then(
      () => {
        this.#onWritten(bytes)
        this.#pump()
      },
      (error) => this.#fail(error),
    )
  }

  #onWritten(bytes: Buffer): void {
    this.busy = false
    this.taken += free(bytes)
    this.#events.onTaken()
  }

  #fail(error: unknown): void {
    this.busy = false
    this.#failed = true
    this.drop()
    this.#events.onSinkFailed(error)
  }
}
