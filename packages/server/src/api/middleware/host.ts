// A page in a browser of this machine can point its own name at 127.0.0.1 and then call us as if we were its server
// (DNS rebinding). It cannot choose the Host header, so on a loopback address only loopback names are served.
import type { IncomingMessage } from 'node:http'
import { IsletError } from '@islet/contract'
import { hostName, isLoopback } from '../../config/loopback.ts'

export type Gate = (incoming: IncomingMessage) => void | Promise<void>

export function hostGate(boundTo: string): Gate {
  if (!isLoopback(boundTo)) return () => {}
  return (incoming) => {
    const name = hostName(incoming.headers.host ?? '')
    if (name !== boundTo && !isLoopback(name)) {
      throw new IsletError('forbidden', 'This server is not known by that Host.', {
        hint: 'It listens on loopback: use localhost or 127.0.0.1, or set ISLET_HOST.',
      })
    }
  }
}
