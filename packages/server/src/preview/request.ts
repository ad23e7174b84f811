// What a request must be like to be passed on: one that could mean two things to two readers is refused.
import type { IncomingMessage } from 'node:http'
import { IsletError } from '@islet/contract'

/** The target as a path, the form that servers take. */
export function checkRequest(incoming: IncomingMessage): string {
  const { url = '/', headers } = incoming
  const hosts = count(incoming, 'host')
  if (hosts > 1 || (hosts === 0 && incoming.httpVersion !== '1.0'))
    throw new IsletError('bad_request', 'A request has exactly one Host.')
  if (count(incoming, 'authorization') > 1)
    throw new IsletError('bad_request', 'A request has at most one Authorization.')
  if (!isPlainlyFramed(incoming)) throw new IsletError('bad_request', 'A body has a length or is chunked.')
  if (/[^\x21-\xff]/.test(url))
    throw new IsletError('bad_request', 'The address of the request is not valid.')
  if (url.startsWith('/') || (url === '*' && incoming.method === 'OPTIONS')) return url
  const [, authority, path = '/'] = /^https?:\/\/([^/?#]+)([/?].*)?$/i.exec(url) ?? []
  if (authority === undefined || authority.toLowerCase() !== headers.host?.toLowerCase())
    throw new IsletError('bad_request', 'The address of the request is not one of this server.')
  return path.startsWith('/') ? path : `/${path}`
}

function count({ rawHeaders }: IncomingMessage, wanted: string): number {
  return rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === wanted).length
}

/** No coding that we would have to take off. That there is not also a length is the parser's to see. */
export function isPlainlyFramed({ headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  return coding === undefined || coding.trim().toLowerCase() === 'chunked'
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** HTTP/2 in the clear would carry requests past us unread: who offers it gets HTTP/1.1. */
export function isUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && !/\bh2c\b/i.test(headers.upgrade)
}
