// Checks for requests to the API and to previews: a request that two programs could read differently is refused.
import type { IncomingMessage } from 'node:http'
import { IsletError } from '@islet/contract'

/** The request target as a path, also if it was sent as an absolute URL. */
export function targetOf(incoming: IncomingMessage): string {
  const { url = '/', headers } = incoming
  const hosts = countOf(incoming, 'host')
  if (hosts > 1 || (hosts === 0 && incoming.httpVersion !== '1.0'))
    throw new IsletError('bad_request', 'A request has exactly one Host.')
  if (countOf(incoming, 'authorization') > 1)
    throw new IsletError('bad_request', 'A request has at most one Authorization.')
  if (url.startsWith('/') || (url === '*' && incoming.method === 'OPTIONS')) return url
  const [, authority, path = '/'] = /^https?:\/\/([^/?#]+)([/?].*)?$/i.exec(url) ?? []
  if (authority === undefined || authority.toLowerCase() !== headers.host?.toLowerCase())
    throw new IsletError('bad_request', 'The address of the request is not one of this server.')
  return path.startsWith('/') ? path : `/${path}`
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

function countOf({ rawHeaders }: IncomingMessage, wanted: string): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === wanted.length && name.toLowerCase() === wanted) count++
  }
  return count
}
