// Against DNS rebinding: a web page can point its own name at 127.0.0.1 and call this server as if it were the page's own. The page
// cannot choose the Host header, so a server on a loopback address accepts only loopback names and its public name.
import type { IncomingMessage } from 'node:http'
import { IsletError } from '@islet/contract'
import { hostName, isLoopback } from '../../../config/loopback.ts'
import type { Config } from '../../../config.ts'
import { targetOf } from '../../../listen/request.ts'
import { pathOf } from '../request.ts'

const HOST = /^([\w.-]+|\[[\da-f:.]+\])(:\d+)?$/i
const DOT_SEGMENT = /\/(\.|%2e){1,2}(\/|$)/i

export type Gate = (incoming: IncomingMessage) => void | Promise<void>

export function hostGate({ host: boundTo, publicUrl }: Pick<Config, 'host' | 'publicUrl'>): Gate {
  const isOpen = !isLoopback(boundTo)
  const publicName = publicUrl && hostName(new URL(publicUrl).host)
  return (incoming) => {
    incoming.url = targetOf(incoming)
    incoming.url = withoutDots(incoming.url, pathOf(incoming))
    const { host = '' } = incoming.headers
    if (!HOST.test(host)) throw new IsletError('bad_request', 'The Host of the request is not valid.')
    const name = hostName(host)
    if (isOpen || name === boundTo || name === publicName || isLoopback(name)) return
    throw new IsletError('forbidden', 'This server is not known by that Host.', {
      hint: 'It listens on loopback: use localhost or 127.0.0.1, or set ISLET_HOST or ISLET_PUBLIC_URL.',
    })
  }
}

/** Resolves `.` and `..` here, once, so that every later check sees the path that the router sees. */
function withoutDots(target: string, path: string): string {
  if (!path.startsWith('/') || path.includes('\\'))
    throw new IsletError('bad_request', 'The path of the request is not valid.')
  return DOT_SEGMENT.test(path) ? new URL(`http://x${path}`).pathname + target.slice(path.length) : target
}
