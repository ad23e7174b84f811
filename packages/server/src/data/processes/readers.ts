// Readers of the URLs of output: the bytes of one channel, or of both, from an offset to the end of the process. A reader whose
// connection broke asks again with the number of bytes that it has.
import { setTimeout } from 'node:timers/promises'
import { IsletError, LIMITS, type OutputChannel } from '@islet/contract'
import { hasCode } from '../../lib/has-code.ts'
import { type Chunks, free, useUp } from '../../wire/chunks.ts'
import { type Reading, readFrom } from './attachment.ts'
import type { TrackedProcess } from './tracked.ts'
import type { ProcessTracker } from './tracker.ts'

/** How often to look for a process in a sandbox that was suspended before this server started. */
export const FOUND_AGAIN_MS = 200

export interface ReadOutput {
  sandboxId: string
  processId: string
  channel: OutputChannel
  offset: number
  /** Aborts when the client goes away, or the server shuts down. */
  signal: AbortSignal
}

export class OutputReaders {
  readonly #tracker: ProcessTracker
  readonly #counts = new Map<string, number>()

  constructor(tracker: ProcessTracker) {
    this.#tracker = tracker
  }

  /** `offset` of the answer: of its first byte; larger than asked for if what was printed before is not kept any more. */
  async read(wanted: ReadOutput): Promise<{ offset: number; body: Chunks<Buffer> }> {
    const { sandboxId, channel, offset, signal } = wanted
    const leave = this.#join(sandboxId)
    try {
      const tracked = await this.#find(wanted)
      // No await between opening the kept output and subscribing: nothing is missed, nothing comes twice.
      const kept = this.#tracker.outputs.openAll(tracked.record)
      if (!kept && tracked.record.status !== 'running' && tracked.record.outputBytes > 0)
        throw new IsletError('output_gone')
      const reading = readFrom(tracked, kept)
      const at = (kept?.place ?? tracked.log.place)[channel]
      const close = () => {
        leave()
        reading.close()
      }
      signal.addEventListener('abort', close, { once: true })
      if (signal.aborted) close()
      const bytes = bytesOf(reading, { channel, offset, at, signal, close })
      return { offset: Math.max(at, offset), body: { [Symbol.asyncIterator]: () => bytes, release: free } }
    } catch (error) {
      leave()
      throw error
    }
  }

  /** In a sandbox that was suspended before this server started, a process is found when the sandbox resumes. */
  async #find({ sandboxId, processId, signal }: ReadOutput): Promise<TrackedProcess> {
    for (;;) {
      const record = this.#tracker.record(sandboxId, processId)
      if (record.status !== 'running') return this.#tracker.ended(record)
      const tracked = await this.#tracker.followed(sandboxId, processId)
      if (tracked) return tracked
      await setTimeout(FOUND_AGAIN_MS, undefined, { ref: false, signal })
    }
  }

  #join(sandboxId: string): () => void {
    const count = this.#counts.get(sandboxId) ?? 0
    if (count >= LIMITS.outputReaders)
      throw new IsletError(
        'limit_exceeded',
        `At most ${LIMITS.outputReaders} readers of URLs can read the output of a sandbox at once.`,
      )
    this.#counts.set(sandboxId, count + 1)
    let isHere = true
    return () => {
      if (!isHere) return
      isHere = false
      const left = this.#counts.get(sandboxId)! - 1
      if (left > 0) this.#counts.set(sandboxId, left)
      else this.#counts.delete(sandboxId)
    }
  }
}

async function* bytesOf(
  reading: Reading,
  {
    channel,
    offset,
    at,
    signal,
    close,
  }: Omit<ReadOutput, 'sandboxId' | 'processId'> & { at: number; close(): void },
): AsyncGenerator<Buffer> {
  let next = at
  try {
    // Sends the head of the answer at once: the first output may come late.
    yield Buffer.alloc(0)
    for await (const event of reading) {
      // The rest without these bytes would look like all of it.
      if (event.type === 'gap') throw new IsletError('output_gone')
      if (event.type !== 'output') continue
      const { bytes } = event
      if (channel !== 'combined' && channel !== event.channel) {
        free(bytes)
        continue
      }
      const known = Math.min(bytes.length, Math.max(0, offset - next))
      next += bytes.length
      useUp(bytes.buffer, known)
      if (known < bytes.length) yield bytes.subarray(known)
    }
  } catch (error) {
    // Its sandbox ended first: this is all that it printed.
    if (!hasCode(error, 'sandbox_lost')) throw error
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
  // A reader that is cut off must not take what it has for all.
  if (signal.aborted) throw new IsletError('draining')
}
