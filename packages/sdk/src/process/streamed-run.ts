// One call that starts a command and gives its output as it comes: the answer is a line of JSON for each piece.
//
//   {start}  {stdout} {stderr} ...  {exit} or {error}       stdin, if it is a stream: POST .../stdin after {start}
//
// Leaving the answer, for any reason, kills the command.
import {
  DEFAULTS,
  type ExecLine,
  type ExecResult,
  execLineShape,
  IsletError,
  LIMITS,
} from '@islet/contract/client'
import { checked } from '../client/checked.ts'
import type { CallOptions, Client } from '../client/client.ts'
import { ClientError, errorFromBody, hasCode, untilAborted } from '../errors.ts'
import { base64, bytesOf } from '../transport/body.ts'
import { type InputSource, isSource, pump } from './input-source.ts'
import type { Channel } from './output-cursor.ts'
import { type OutputOfRun, OutputTargets } from './output-target.ts'

export interface StreamedRun extends OutputOfRun {
  stdin?: string | Uint8Array | InputSource | undefined
  encoding?: 'utf8' | 'base64' | undefined
  maxOutputBytes?: number | undefined
  signal?: AbortSignal | undefined
}

const STDIN_BYTES = 1024 * 1024
/** The process does not read its stdin any more. */
const ENDED = ['invalid_state', 'process_not_found', 'sandbox_not_found', 'sandbox_lost'] as const

export function isStreamed({ stdin, onStdout, onStderr, stdout, stderr }: StreamedRun): boolean {
  return [onStdout, onStderr, stdout, stderr].some((one) => one !== undefined) || isSource(stdin)
}

/** `body`: the call without the fields of `StreamedRun`. */
export async function runStreamed<Name extends 'exec' | 'run'>(
  client: Client,
  name: Name,
  { params, body }: Pick<CallOptions<Name>, 'params'> & { body: object },
  { stdin, encoding, maxOutputBytes, signal, ...output }: StreamedRun,
): Promise<ExecResult & { sandboxId: string }> {
  const kept = new KeptOutput({ maxOutputBytes, encoding })
  const over = new AbortController()
  let failure: { error: unknown } | undefined
  const fail = (error: unknown): void => {
    failure ??= { error }
    over.abort()
  }
  const both = signal ? AbortSignal.any([signal, over.signal]) : over.signal
  const targets = new OutputTargets(output, fail)
  // Base64 carries any bytes, and takes less time than text with escapes.
  const asked = { ...body, stream: true, encoding: 'base64', ...stdinFields(stdin) }
  try {
    let sandboxId = ''
    let end: Extract<ExecLine, { type: 'exit' | 'error' }> | undefined
    const call = { params, body: asked, signal: both } as unknown as CallOptions<Name>
    for await (const given of client.lines(name, call)) {
      const line = checked<ExecLine>(execLineShape, given, `A line of the answer to ${name}`)
      if (line.type === 'start') {
        sandboxId = line.sandboxId
        if (isSource(stdin)) feed(client, line, stdin, both).catch(fail)
      } else if (line.type === 'exit' || line.type === 'error') {
        // The answer is read to its end, so that the connection can be used again.
        end = line
      } else {
        const bytes = bytesOf(line.data)
        kept.add(line.type, bytes)
        const taken = targets.write(line.type, bytes)
        if (taken !== undefined) await untilAborted(taken, both)
      }
    }
    if (end === undefined) throw new ClientError('bad_response', 'The answer ended before the command did.')
    if (end.type === 'error') throw errorFromBody(end.error)
    const { type, ...result } = end
    return { ...result, sandboxId, ...kept.result() }
  } catch (error) {
    throw failure && !signal?.aborted ? failure.error : error
  } finally {
    over.abort() // ends the reading of stdin, and the request if that still runs
    targets.release()
  }
}

/** The body fields of a stdin. A stream is sent after the start. */
export function stdinFields(stdin: StreamedRun['stdin']) {
  if (stdin === undefined || typeof stdin === 'string') return { stdin }
  if (stdin instanceof Uint8Array) return { stdin: base64(stdin), stdinEncoding: 'base64' as const }
  if (isSource(stdin) && !('locked' in stdin && stdin.locked)) return { stdin: true as const }
  throw new IsletError('bad_request', 'stdin is neither text, nor bytes, nor a stream that can be read.')
}

async function feed(
  client: Client,
  { sandboxId, processId }: { sandboxId: string; processId: string },
  source: InputSource,
  signal: AbortSignal,
): Promise<void> {
  const params = { id: sandboxId, pid: processId }
  const send = (body: { data?: string; encoding?: 'base64'; end?: boolean }) =>
    client.call('writeStdin', { params, body, signal })
  try {
    const take = async (bytes: Uint8Array): Promise<void> => {
      for (let at = 0; at < bytes.length; at += STDIN_BYTES)
        await send({ data: base64(bytes.subarray(at, at + STDIN_BYTES)), encoding: 'base64' })
    }
    await pump(source, take, signal)
    await send({ end: true })
  } catch (error) {
    if (!signal.aborted && !hasCode(error, ...ENDED)) throw error
  }
}

/** The beginning of the output, for the result. */
class KeptOutput {
  readonly #parts: Record<Channel, Uint8Array[]> = { stdout: [], stderr: [] }
  readonly #encoding: 'utf8' | 'base64'
  #room: number
  #droppedBytes = 0

  /** The server does not see these options of a streamed run. */
  constructor({
    maxOutputBytes = DEFAULTS.execOutputBytes,
    encoding = 'utf8',
  }: Pick<StreamedRun, 'maxOutputBytes' | 'encoding'>) {
    if (!Number.isInteger(maxOutputBytes) || maxOutputBytes < 0 || maxOutputBytes > LIMITS.execOutputBytes)
      throw new IsletError('bad_request', `maxOutputBytes is a whole number up to ${LIMITS.execOutputBytes}.`)
    if (encoding !== 'utf8' && encoding !== 'base64')
      throw new IsletError('bad_request', 'encoding is utf8 or base64.')
    this.#room = maxOutputBytes
    this.#encoding = encoding
  }

  add(channel: Channel, bytes: Uint8Array): void {
    const part = bytes.subarray(0, this.#room)
    // A copy: a handler may change its bytes.
    if (part.length > 0) this.#parts[channel].push(part.slice())
    this.#room -= part.length
    this.#droppedBytes += bytes.length - part.length
  }

  result() {
    const { stdout, stderr } = this.#parts
    const droppedBytes = this.#droppedBytes
    const text = (parts: Uint8Array[]) => {
      const bytes = joined(parts)
      return this.#encoding === 'base64'
        ? base64(bytes)
        : new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
    }
    return { stdout: text(stdout), stderr: text(stderr), truncated: droppedBytes > 0, droppedBytes }
  }
}

function joined(parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
