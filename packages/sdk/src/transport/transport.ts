// How a call travels: by Node's own HTTP client where there is one, else by fetch.
import { fetchTransport } from './fetch.ts'
import { nodeTransport } from './node-http.ts'

/** What a call needs of an answer; the platform's Response is one. */
export type Answer = Pick<Response, 'ok' | 'status' | 'statusText' | 'body' | 'text' | 'arrayBuffer'> & {
  /** The body, and what breaks it is explained. Without it, `relay` does that around the body, at some cost. */
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

/** `path` begins after the server's address. A TypeError, as fetch has it, says that there was no answer, or no end of it. */
export type Transport = (path: string, ask: Ask) => Promise<Answer>

export function transportTo(
  url: string,
  { socketPath, fetch }: { socketPath?: string | undefined; fetch?: typeof globalThis.fetch | undefined },
): Transport {
  return (fetch === undefined ? nodeTransport(url, socketPath) : undefined) ?? fetchTransport(url, fetch)
}
