// One reader of a process: its kept output, then `replay-end`, then its live output, then its exit. A client can also write to it.
import { IsletError, type ProcessInfo } from '@islet/contract'
import type { OutputChannel, TerminalSize } from '../../guest/guest.ts'
import { Windows } from '../../guest/streams/windows.ts'
import { Wakeup } from '../../lib/wakeup.ts'
import type { OutputPiece, OutputReader } from '../output/output-reader.ts'
import { endOf, type OutputListener, type ProcessEnd, type TrackedProcess, toProcessInfo } from './tracked.ts'

/** Output that waits for a slow client; beyond it the program waits. All clients of a server share this memory. */
const QUEUES = new Windows({ sharedBytes: 2 * 1024 ** 2, minBytes: 32 * 1024, maxBytes: 1024 ** 2 })
/** A piece takes memory however small it is. */
const PIECE_COST_BYTES = 256

export type AttachEvent =
  | { type: 'output'; channel: OutputChannel; bytes: Buffer }
  /** Kept output was removed while it was being replayed: the next byte has this offset. */
  | { type: 'gap'; droppedBytes: number }
  | { type: 'replay-end' }
  | { type: 'exit'; end: ProcessEnd }

/** Iterate at your own pace: the program waits for the slowest reader. */
export interface Reading extends AsyncIterable<AttachEvent> {
  /** Ends the iteration and leaves the process running. Twice is fine. */
  close(): void
}

/** One client of a process. */
export interface Attachment extends Reading {
  process: ProcessInfo
  truncated: boolean
  /** Bytes printed before the first one that is replayed. */
  droppedBytes: number
  writeStdin(bytes: Uint8Array): Promise<void>
  endStdin(): Promise<void>
  resize(size: TerminalSize): Promise<void>
  signal(signal: number): Promise<void>
}

export function attachTo(
  tracked: TrackedProcess,
  { kept, droppedBytes }: { kept: OutputReader | undefined; droppedBytes: number },
  controls: Pick<Attachment, 'resize' | 'signal'>,
): Attachment {
  const stdin = () => {
    if (!tracked.guest) throw new IsletError('process_not_found', 'The process does not take input any more.')
    return tracked.guest
  }
  return {
    ...readFrom(tracked, kept, (queue) => tracked.attach(queue)),
    process: toProcessInfo(tracked.record),
    truncated: droppedBytes > 0,
    droppedBytes,
    writeStdin: async (bytes) => stdin().writeStdin(bytes),
    endStdin: async () => stdin().endStdin(),
    ...controls,
  }
}

/** Begins with what is kept, if that is given. `join` adds the reader to the process. */
export function readFrom(
  tracked: TrackedProcess,
  kept: OutputReader | undefined,
  join = (queue: OutputListener) => tracked.listen(queue),
): Reading {
  const queue = new OutputQueue()
  const leave = join(queue)
  const close = () => {
    leave()
    queue.close()
    kept?.close()
  }
  void tracked.ended.then(() => queue.finish())
  async function* events(): AsyncGenerator<AttachEvent> {
    try {
      let next = kept?.start ?? 0
      for (const { channel, bytes, at, end } of kept ?? []) {
        if (at > next) yield { type: 'gap', droppedBytes: at }
        next = end
        yield { type: 'output', channel, bytes }
      }
      if (kept && kept.end > next) yield { type: 'gap', droppedBytes: kept.end }
      yield { type: 'replay-end' }
      for await (const piece of queue) yield { type: 'output', ...piece }
      if (queue.closed) return
      const end = endOf(await tracked.ended)
      if (!end) throw new IsletError('sandbox_lost', tracked.lostBecause)
      yield { type: 'exit', end }
    } finally {
      close()
    }
  }
  return { close, [Symbol.asyncIterator]: events }
}

class OutputQueue implements OutputListener {
  closed = false
  #finished = false
  #pieces: OutputPiece[] = []
  #bytes = 0
  readonly #news = new Wakeup()
  readonly #room = new Wakeup()

  constructor() {
    QUEUES.opened()
  }

  output(channel: OutputChannel, bytes: Buffer): void | Promise<void> {
    if (this.closed) return
    // The caller frees the bytes once this returns.
    this.#pieces.push({ channel, bytes: Buffer.from(bytes) })
    this.#bytes += bytes.length + PIECE_COST_BYTES
    this.#news.wake()
    if (this.#bytes > QUEUES.size()) return this.#room.wait()
  }

  finish(): void {
    this.#finished = true
    this.#news.wake()
  }

  /** Twice is fine. */
  close(): void {
    if (!this.closed) QUEUES.closed()
    this.closed = true
    this.#pieces = []
    this.#room.wake()
    this.#news.wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<OutputPiece> {
    while (!this.closed) {
      const piece = this.#pieces.shift()
      if (piece) {
        this.#bytes -= piece.bytes.length + PIECE_COST_BYTES
        if (this.#bytes <= QUEUES.size()) this.#room.wake()
        yield piece
      } else if (this.#finished) return
      else await this.#news.wait()
    }
  }
}
