// The answer to exec or run with `stream`: a line of JSON for each piece of output.
//
//   {type:'start'}  {type:'stdout'|'stderr', data, encoding?} ...  {type:'exit'} or {type:'error'}
import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import type { ExecLine } from '@islet/contract'
import type { StreamedCommand } from '../../data/processes/commands.ts'
import type { OutputChannel } from '../../guest/guest.ts'
import { beating } from '../../lib/beating.ts'
import { free } from '../../wire/chunks.ts'
import { Bytes } from '../route.ts'
import { asErrorLine } from './errors.ts'

const HEADERS = { 'Content-Type': 'application/x-ndjson', 'X-Accel-Buffering': 'no' }

/** An empty line after this long without output, so that no proxy or client closes the connection as dead. */
const BEAT_MS = 15_000
const BEAT = Buffer.from('\n')
/** As long as an attached client may read nothing. */
const STALL_MS = 600_000

/** Bytes in a line of text: escapes make it up to six times as long, and a millisecond of work. */
const TEXT_BYTES = 16 * 1024

interface Told {
  sandboxId: string
  autoResumed: boolean
  encoding: 'utf8' | 'base64' | undefined
}

export function execLines(command: StreamedCommand, told: Told): Bytes {
  const lines = linesOf(command, told)
  const body = { [Symbol.asyncIterator]: () => lines, release: free }
  return new Bytes(body, HEADERS, 200, { stallMs: STALL_MS })
}

/** A failure after the start is a line: the head of the answer is sent. */
async function* linesOf(
  { processId, events }: StreamedCommand,
  { sandboxId, autoResumed, encoding }: Told,
): AsyncGenerator<Buffer> {
  try {
    yield toLine({ type: 'start', sandboxId, processId, autoResumed })
    const texts = { stdout: new Texts('stdout', encoding), stderr: new Texts('stderr', encoding) }
    for await (const event of beating(events, BEAT_MS)) {
      if (event === undefined) yield BEAT
      else if (event.type === 'output') {
        for (const line of texts[event.channel].lines(event.bytes)) {
          yield line
          // Lets other requests run: text takes time.
          if (encoding !== 'base64' && line.length >= TEXT_BYTES) await setImmediate()
        }
        free(event.bytes)
      } else if (event.type === 'exit') {
        yield* texts.stdout.rest()
        yield* texts.stderr.rest()
        yield toLine({ type: 'exit', processId, ...event.end, autoResumed, ...ALL })
      }
    }
  } catch (error) {
    yield Buffer.from(`${JSON.stringify(asErrorLine(error))}\n`)
  }
}

/** The reader sets the pace, so nothing is left out. */
const ALL = { truncated: false, droppedBytes: 0 }

/** Gives the bytes of a channel as text. The bytes of a character that has not come in full wait for the others. */
class Texts {
  readonly #type: OutputChannel
  readonly #isBase64: boolean
  #waiting = Buffer.alloc(0)

  constructor(type: OutputChannel, encoding: Told['encoding']) {
    this.#type = type
    this.#isBase64 = encoding === 'base64'
  }

  *lines(bytes: Buffer): Generator<Buffer> {
    const all = this.#waiting.length > 0 ? Buffer.concat([this.#waiting, bytes]) : bytes
    let at = 0
    for (let end: number; at < all.length; at = end) {
      const piece = this.#isBase64 ? all.subarray(at) : all.subarray(at, at + TEXT_BYTES)
      end = at + (this.#isBase64 ? piece.length : endOfCharacters(piece))
      if (end === at) break
      yield this.#line(all.subarray(at, end))
    }
    this.#waiting = Buffer.from(all.subarray(at))
  }

  /** What the program left unfinished. */
  *rest(): Generator<Buffer> {
    if (this.#waiting.length > 0) yield this.#line(this.#waiting)
  }

  #line(bytes: Buffer): Buffer {
    if (!this.#isBase64 && isUtf8(bytes)) return toLine({ type: this.#type, data: bytes.toString() })
    // Base64 needs no escapes: a tenth of the time of JSON.stringify.
    const data = bytes.toString('base64')
    return Buffer.from(`{"type":"${this.#type}","encoding":"base64","data":"${data}"}\n`, 'latin1')
  }
}

/** Before a character at the end that is begun and not finished. */
function endOfCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 && byte < 0xf8 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back && byte < 0xf8 ? bytes.length - back : bytes.length
  }
  return bytes.length
}

const toLine = (line: ExecLine): Buffer => Buffer.from(`${JSON.stringify(line)}\n`)
