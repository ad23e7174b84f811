// WS /v1/sandboxes/{id}/processes/{pid}/attach
//
//   server: {type:'start'}  [channel][bytes]...  {type:'replay-end'}  [channel][bytes]...  {type:'exit'}  close 1000
//   client: [bytes of stdin]   {type:'resize'|'signal'|'stdin-end'}
//
// A second start is sent if kept output was removed while it was being sent: its droppedBytes is the offset of the next byte.
// Output is read from the process only as fast as the client takes it, stdin from the client only as fast as the
// process takes it. An error is {type:'error'} and a close: 1003 not JSON, 1008 not a message, 4000 + the HTTP status of
// a caller's error, 1011 ours.
import { type AttachServerMessage, attachClientMessage, type attachQuery, IsletError } from '@islet/contract'
import { type RawData, WebSocket } from 'ws'
import type { z } from 'zod'
import type { AttachEvent, Attachment } from '../../data/processes/attachment.ts'
import { signalNumber } from '../../lib/signal-numbers.ts'
import type { Log } from '../../log.ts'
import { free } from '../../wire/chunks.ts'
import { validate } from '../http/validate.ts'
import type { ApiDeps } from '../route.ts'
import { endSocket, failSocket, keepAlive, send } from './socket.ts'
import type { WebSocketRoute } from './upgrade.ts'

const CHANNELS = { stdout: 1, stderr: 2 } as const
const NOT_JSON = 1003
/** The limit of a text message; stdin is sent as binary messages. */
const MAX_TEXT_BYTES = 4096
const NOT_A_MESSAGE = 1008

export function attachSocket({ processes, log }: Pick<ApiDeps, 'processes' | 'log'>): WebSocketRoute {
  return async ({ params, query }) => {
    const { replay = true } = query as z.output<typeof attachQuery>
    const attachment = await processes.attach(params.id!, params.pid!, { replay })
    return {
      serve: (socket) => void serve(socket, attachment, log),
      close: () => attachment.close(),
    }
  }
}

async function serve(socket: WebSocket, attachment: Attachment, log: Log): Promise<void> {
  const fail = (thrown: unknown, code?: number): void => failSocket(socket, thrown, log, code)
  socket.on('error', (error) => log.debug({ err: error }, 'attached client broke the protocol'))
  receive(socket, attachment, fail)
  keepAlive(socket)
  try {
    const { process, truncated, droppedBytes } = attachment
    await sendMessage(socket, { type: 'start', process, truncated, droppedBytes })
    for await (const event of attachment) {
      if (socket.readyState !== WebSocket.OPEN) return
      if (event.type === 'gap')
        await sendMessage(socket, { ...event, type: 'start', process, truncated: true })
      else await sendEvent(socket, event)
      if (event.type === 'exit') return endSocket(socket)
    }
    if (socket.readyState === WebSocket.OPEN) fail(new IsletError('sandbox_lost'))
  } catch (error) {
    fail(error)
  } finally {
    attachment.close()
  }
}

function sendEvent(socket: WebSocket, event: Exclude<AttachEvent, { type: 'gap' }>): Promise<void> {
  if (event.type === 'exit') return sendMessage(socket, { type: 'exit', ...event.end })
  if (event.type === 'replay-end') return sendMessage(socket, { type: 'replay-end' })
  const frame = Buffer.allocUnsafe(1 + event.bytes.length)
  frame[0] = CHANNELS[event.channel]
  frame.set(event.bytes, 1)
  free(event.bytes)
  return send(socket, frame)
}

const sendMessage = (socket: WebSocket, message: AttachServerMessage): Promise<void> =>
  send(socket, JSON.stringify(message))

/** One message at a time, in order; the socket is not read while one is being handled. */
function receive(
  socket: WebSocket,
  attachment: Attachment,
  fail: (error: unknown, code?: number) => void,
): void {
  let waiting = 0
  let last = Promise.resolve()
  socket.on('message', (data, isBinary) => {
    if (waiting++ === 0) socket.pause()
    last = last
      .then(() => (socket.readyState === WebSocket.OPEN ? handle(data, isBinary) : undefined))
      .catch((error) => {
        if (!isPastItsEnd(error)) fail(error, error instanceof BadMessage ? error.closeCode : undefined)
      })
      .finally(() => --waiting === 0 && socket.resume())
  })

  function handle(data: RawData, isBinary: boolean): Promise<void> {
    if (isBinary) return attachment.writeStdin(data as Buffer)
    const message = parse(data as Buffer)
    if (message.type === 'resize') return attachment.resize({ cols: message.cols, rows: message.rows })
    if (message.type === 'signal') return attachment.signal(signalNumber(message.signal))
    return attachment.endStdin()
  }
}

/** The process ended while its input was on the way: the exit message follows. */
function isPastItsEnd(error: unknown): boolean {
  return error instanceof IsletError && error.code === 'process_not_found'
}

class BadMessage extends IsletError {
  readonly closeCode: number

  constructor(closeCode: number, message: string) {
    super('bad_request', message)
    this.closeCode = closeCode
  }
}

function parse(data: Buffer): z.output<typeof attachClientMessage> {
  if (data.length > MAX_TEXT_BYTES) throw new BadMessage(NOT_A_MESSAGE, 'The message is too long.')
  let value: unknown
  try {
    value = JSON.parse(data.toString('utf8'))
  } catch {
    throw new BadMessage(NOT_JSON, 'The message is not JSON; bytes of stdin are binary messages.')
  }
  try {
    return validate(attachClientMessage, value, 'message')
  } catch (error) {
    throw new BadMessage(NOT_A_MESSAGE, (error as Error).message)
  }
}
