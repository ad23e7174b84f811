import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Of requests that a client sends one behind the other, only the first has a response that hears of the connection's end. */
const waiting = new WeakMap<Socket, Set<() => void>>()

/** Calls once: when the response is out, or the connection is gone, whichever is first. */
export function whenOver({ socket }: IncomingMessage, outgoing: ServerResponse, over: () => void): void {
  const others = waiting.get(socket) ?? waitAt(socket)
  const once = (): void => {
    if (others.delete(once)) over()
  }
  others.add(once)
  outgoing.once('close', once)
  if (socket.destroyed) once()
}

function waitAt(socket: Socket): Set<() => void> {
  const all = new Set<() => void>()
  waiting.set(socket, all)
  socket.once('close', () => {
    for (const once of all) once()
  })
  return all
}
