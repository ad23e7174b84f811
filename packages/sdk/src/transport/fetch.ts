import type { Transport } from './transport.ts'

/** The caller's fetch, or the platform's. */
export function fetchTransport(
  url: string,
  fetch: typeof globalThis.fetch = (input, init) => globalThis.fetch(input, init),
): Transport {
  // Bun's default timeout is some minutes; a command may take longer.
  return (path, ask) => fetch(url + path, { ...ask, timeout: false } as RequestInit)
}
