// A page in a browser of this machine can point its own name at 127.0.0.1 and then call us as if we were its server
// (DNS rebinding). It cannot choose the Host header, so on a loopback address only loopback names are served, and the one by
// which a proxy makes this server public. There is one Host, and an absolute target names the same.
import type { IncomingMessage } from 'node:http'
import { IsletError } from '@islet/contract'
import { hostName, isLoopback } from '../../../config/loopback.ts'
import type { Config } from '../../../config.ts'
import { targetOf } from '../../../listen/request.ts'

export type Gate = (incoming: IncomingMessage) => void | Promise<void>

export function hostGate({ host: boundTo, publicUrl }: Pick<Config, 'host' | 'publicUrl'>): Gate {
  const isOpen = !isLoopback(boundTo)
  const publicName = publicUrl && hostName(new URL(publicUrl).host)
  return (incoming) => {
    incoming.url = targetOf(incoming)
    const name = hostName(incoming.headers.host ?? '')
    if (isOpen || name === boundTo || name === publicName || isLoopback(name)) return
    throw new IsletError('forbidden', 'This server is not known by that Host.', {
      hint: 'It listens on loopback: use localhost or 127.0.0.1, or set ISLET_HOST or ISLET_PUBLIC_URL.',
    })
  }
}
