// Bodies of requests: JSON with a size limit that is checked while bytes arrive; raw bytes at the reader's pace.
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { IsletError, LIMITS } from '@islet/contract'
import type { Hold } from '../../control/held.ts'
import { hasBody } from '../../listen/request.ts'
import { type Chunks, free } from '../../wire/chunks.ts'
import { BodyStream } from './body-stream.ts'
import { checkShape } from './json-shape.ts'
import { clientGone } from './request.ts'

/** A JSON body that makes no progress for this long is given up. */
const IDLE_MS = 60_000

/** Smaller bodies are not counted: the number of connections bounds them. */
const SMALL_BODY_BYTES = 64 * 1024

const waitsForContinue = new WeakSet<IncomingMessage>()

/** `Expect: 100-continue`: the client waits with its body until the server reads it. */
export function expectContinue(incoming: IncomingMessage): void {
  waitsForContinue.add(incoming)
}

export function bodyIsOnItsWay(incoming: IncomingMessage): boolean {
  return !incoming.complete && !waitsForContinue.has(incoming) && hasBody(incoming)
}

/** The parsed body; an empty body is {}. `hold` counts bodies that are not small. */
export async function readJson(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { limit = LIMITS.jsonBodyBytes, hold }: { limit?: number; hold: Hold },
): Promise<unknown> {
  if (!hasBody(incoming)) return {}
  const encoding = incoming.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    throw new IsletError(
      'invalid_header',
      `A JSON body is sent as it is, not with Content-Encoding: ${encoding}.`,
    )
  }
  const bytes = await readAll(incoming, outgoing, limit, hold)
  if (bytes.length === 0) return {}
  if (!isJsonType(incoming.headers['content-type'])) {
    throw new IsletError('invalid_json', 'The Content-Type of the body is not application/json.')
  }
  if (!isUtf8(bytes)) throw new IsletError('invalid_json', 'The body is not valid UTF-8.')
  checkShape(bytes)
  try {
    const text = bytes.toString('utf8')
    free(bytes)
    return JSON.parse(text)
  } catch (error) {
    throw new IsletError('invalid_json', `The body is not valid JSON: ${parseProblem(error)}.`)
  }
}

/** The body as it arrives. Leaving the iteration keeps the connection, so that an error can still be sent. */
export function byteStream(incoming: IncomingMessage, outgoing: ServerResponse): Chunks<Buffer> {
  return {
    [Symbol.asyncIterator]() {
      sendContinue(incoming, outgoing)
      return new BodyStream(incoming)
    },
    release: free,
  }
}

function readAll(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limit: number,
  hold: Hold,
): Promise<Buffer> {
  const tooLarge = () =>
    new IsletError('body_too_large', `The JSON body of this request has at most ${limit} bytes.`, {
      details: { limitBytes: limit },
    })
  const tooMany = () => new IsletError('too_many_requests', 'Too many large requests at once.')
  const expected = Number(incoming.headers['content-length'] ?? limit)
  if (expected > limit) return Promise.reject(tooLarge())
  if (expected > SMALL_BODY_BYTES && !hold.take(expected)) return Promise.reject(tooMany())
  sendContinue(incoming, outgoing)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const idle = setTimeout(
      () => finish(new IsletError('request_timeout', 'The body did not arrive in time.')),
      IDLE_MS,
    )
    const finish = (error?: unknown): void => {
      clearTimeout(idle)
      incoming.off('data', onData).off('end', onEnd).off('error', finish).off('close', onClose)
      if (error === undefined) {
        resolve(joined(chunks, size))
      } else {
        incoming.pause()
        reject(error)
      }
    }
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      if (size > limit) {
        finish(tooLarge())
      } else {
        chunks.push(chunk)
        idle.refresh()
      }
    }
    const onEnd = (): void => finish()
    const onClose = (): void => finish(clientGone())
    incoming.on('data', onData).on('end', onEnd).on('error', finish).on('close', onClose)
  })
}

/** Joins the chunks and frees them. */
function joined(chunks: Buffer[], size: number): Buffer {
  if (chunks.length === 1) return chunks[0]!
  const whole = Buffer.concat(chunks, size)
  for (const chunk of chunks) free(chunk)
  return whole
}

function sendContinue(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (waitsForContinue.delete(incoming)) outgoing.writeContinue()
}

function isJsonType(type: string | undefined): boolean {
  return type !== undefined && /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type)
}

/** The position of the mistake, without quoting the body. */
function parseProblem(error: unknown): string {
  const at = /at position (\d+)/.exec(String(error))
  return at ? `it goes wrong at character ${at[1]}` : 'it ends too early'
}
