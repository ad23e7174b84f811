/** Browsers cannot set headers on a WebSocket: they send the key as a protocol, `islet.bearer.<key>`, beside `islet`. */
export const BEARER_PROTOCOL = 'islet.bearer.'

/** The key or token of an `Authorization: Bearer` header. */
export function bearerOf(header: string | undefined): string | undefined {
  const match = header === undefined ? null : /^bearer +([\x21-\x7e]+) *$/i.exec(header)
  return match?.[1]
}
