// The WebSocket of the platform or the caller. The key is sent as a subprotocol: browsers cannot set headers, and URLs end up in
// logs.
import { ClientError } from '../errors.ts'
import { isNode } from '../platform.ts'
import { connectLocally } from './local-socket.ts'

export interface Socket {
  binaryType: string
  readonly bufferedAmount: number
  onopen: ((event: never) => void) | null
  onmessage: ((event: { data: unknown }) => void) | null
  onerror: ((event: never) => void) | null
  onclose: ((event: { code: number; reason: string }) => void) | null
  send(data: string | Uint8Array<ArrayBuffer>): void
  close(code?: number, reason?: string): void
  /** Backpressure, if the implementation has it (`ws`). */
  pause?(): void
  resume?(): void
}

export type SocketConstructor = new (url: string, protocols: string[]) => Socket

const PROTOCOL = 'islet'

/**
 * In Node `ws`, which bundles for browsers leave out: it can be paused, and it can use the socket file of a server on this machine.
 * Elsewhere, and if `ws` is missing but not needed, the platform's own.
 */
export async function platformSocket(socketPath: string | undefined): Promise<SocketConstructor> {
  const own = globalThis.WebSocket as unknown as SocketConstructor | undefined
  if (own && !isNode()) return own
  try {
    const { WebSocket } = await import('ws')
    if (socketPath === undefined) return WebSocket as unknown as SocketConstructor
    const createConnection = (_: unknown, done: Parameters<typeof connectLocally>[2]) =>
      connectLocally(socketPath, {}, done)
    return class extends WebSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols, { createConnection } as object)
      }
    } as unknown as SocketConstructor
  } catch (cause) {
    if (own && socketPath === undefined) return own
    throw new ClientError('connection_failed', 'This platform has no WebSocket.', {
      hint: 'Use Node 22 or newer, or install ws, or pass an implementation as the option WebSocket.',
      cause,
    })
  }
}

export function openSocket(
  Implementation: SocketConstructor,
  url: string,
  apiKey: string | undefined,
): Socket {
  const protocols = [PROTOCOL, ...(apiKey === undefined ? [] : [`islet.bearer.${apiKey}`])]
  try {
    const socket = new Implementation(url.replace(/^http/, 'ws'), protocols)
    socket.binaryType = 'arraybuffer'
    return socket
  } catch {
    // The message of the cause would contain the protocols, and so the key.
    throw new ClientError('connection_failed', 'A WebSocket to the server could not be opened.', {
      hint: 'Check ISLET_URL, and that the API key has only letters, digits and -_.~+, as WebSockets need.',
    })
  }
}
