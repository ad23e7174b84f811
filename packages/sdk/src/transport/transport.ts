// How a call is sent: with Node's own HTTP client if there is one, else with fetch.
import { fetchTransport } from './fetch.ts'
import { nodeTransport } from './node-http.ts'

/** The part of a Response that a call needs. */
export type Answer = Pick<Response, 'ok' | 'status' | 'statusText' | 'body' | 'text' | 'arrayBuffer'> & {
  /** The body, with errors passed through `explain`. Without this method `relay` wraps `body`, which is slower. */
  stream?(explain: Explain): ReadableStream<Uint8Array>
}

export type Explain = (error: unknown) => unknown

export interface Ask {
  method: string
  headers: Record<string, string>
  body?: BodyInit
  duplex?: 'half'
  signal?: AbortSignal
}

/** `path` is relative to the server's URL. Rejects with a TypeError, as fetch does, if the answer is missing or incomplete. */
export type Transport = (path: string, ask: Ask) => Promise<Answer>

export function transportTo(
  url: string,
  { socketPath, fetch }: { socketPath?: string | undefined; fetch?: typeof globalThis.fetch | undefined },
): Transport {
  return (fetch === undefined ? nodeTransport(url, socketPath) : undefined) ?? fetchTransport(url, fetch)
}
