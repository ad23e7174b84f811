// The caller of a request. The admin key reaches everything, a sandbox's token reaches that sandbox, and programs inside a
// sandbox reach only the routes that take their sandbox from the caller.
import type { IncomingMessage } from 'node:http'
import { IsletError, type Route } from '@islet/contract'
import type { Holder } from '../../access/credentials.ts'

export type Caller =
  | Holder
  /** Through the socket inside a sandbox. `hasToken`: the request brought the sandbox's store token. */
  | { kind: 'inside'; sandboxId: string; hasToken: boolean }

/** The sandbox that a socket comes from. */
export interface Origin {
  sandboxId: string
  /** The last valid token, so that it is not verified again with every request. */
  knownToken?: string
}

const insideSockets = new WeakMap<object, Origin>()

/** Every request on this socket comes from inside that sandbox, whatever its headers say. */
export function markInside(socket: object, origin: Origin): void {
  insideSockets.set(socket, origin)
}

/** The sandbox that the request comes from; undefined if it comes from outside. */
export function insideOf(incoming: IncomingMessage): Origin | undefined {
  return insideSockets.get(incoming.socket)
}

const callers = new WeakMap<IncomingMessage, Caller>()

export function setCaller(incoming: IncomingMessage, caller: Caller): void {
  callers.set(incoming, caller)
}

/** Undefined on open routes. */
export function callerOf(incoming: IncomingMessage): Caller | undefined {
  return callers.get(incoming)
}

/** Throws unless this caller may call this route with these parameters. */
export function authorize(route: Route, params: Record<string, string>, caller: Caller | undefined): void {
  if (caller?.kind === 'inside') authorizeInside(route, caller)
  if (caller?.kind === 'inside' || caller?.kind === 'admin' || route.open) return
  if (!caller) throw new IsletError('unauthorized')
  if (route.ofCaller) return
  if (caller.kind === 'sandbox' && params.id === caller.sandboxId && !route.keyOnly) return
  if (params.id !== undefined && params.id !== caller.sandboxId)
    throw new IsletError('forbidden', `This token is for sandbox ${caller.sandboxId} alone.`)
  throw new IsletError('forbidden', 'The token of a sandbox is not enough for this.', {
    hint: 'This needs the API key, which reaches the whole server.',
  })
}

function authorizeInside(route: Route, caller: { hasToken: boolean }): void {
  if (!route.ofCaller) throw notFromInside()
  if (!caller.hasToken && !route.tokenless) {
    throw new IsletError('unauthorized', 'This wants the token of the sandbox.', {
      hint: 'Create the sandbox with storeAccess; it is in ISLET_STORE_TOKEN then.',
    })
  }
}

export function notFromInside(): IsletError {
  return new IsletError('forbidden', 'From inside a sandbox only its store and its signals can be reached.')
}

/** The sandbox of a route that takes it from the caller. */
export function ownSandbox(caller: Caller | undefined): string {
  if (caller && caller.kind !== 'admin') return caller.sandboxId
  throw new IsletError('forbidden', 'This route takes its sandbox from a sandbox token.', {
    hint: 'Use the same route under /v1/sandboxes/{id}, or the token of a sandbox.',
  })
}
