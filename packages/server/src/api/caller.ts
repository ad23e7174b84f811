// Who is calling: the admin key reaches everything, a sandbox's token that sandbox, and what comes from inside a sandbox
// only the routes that take their sandbox from the caller.
import type { IncomingMessage } from 'node:http'
import { IsletError, type Route } from '@islet/contract'

export type Caller =
  | { kind: 'admin' }
  | { kind: 'sandbox'; sandboxId: string }
  /** Through the socket that a sandbox has to this server. `trusted`: with the token it was given. */
  | { kind: 'inside'; sandboxId: string; hasToken: boolean }

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
  if (route.open || caller?.kind === 'admin') return
  if (!caller) throw new IsletError('unauthorized')
  if (route.ofCaller) return
  if (caller.kind === 'sandbox' && params.id === caller.sandboxId) return
  throw new IsletError(
    'forbidden',
    caller.kind === 'sandbox'
      ? `This token is for sandbox ${caller.sandboxId} alone.`
      : 'From inside a sandbox only its store and its signals can be reached.',
  )
}

/** The sandbox of a route that takes it from the caller. */
export function ownSandbox(caller: Caller | undefined): string {
  if (caller && caller.kind !== 'admin') return caller.sandboxId
  throw new IsletError('forbidden', 'This route takes its sandbox from a sandbox token.', {
    hint: 'Use the same route under /v1/sandboxes/{id}, or the token of a sandbox.',
  })
}
