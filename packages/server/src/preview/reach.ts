// Connects to a port of a sandbox within a bounded time; errors are for visitors.
import type { Duplex } from 'node:stream'
import { IsletError } from '@islet/contract'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { PreviewRecord } from '../db/previews.ts'

const DIAL_TIMEOUT_MS = 10_000

interface Reached {
  connection: Duplex
  /** The sandbox was suspended and was woken for this connection. */
  autoResumed: boolean
}

/** Aborting the signal ends the connection, also after it is open. */
export async function reach(
  sandboxes: Sandboxes,
  record: PreviewRecord,
  signal: AbortSignal,
): Promise<Reached> {
  const late = Promise.withResolvers<never>()
  const controller = new AbortController()
  const abort = (): void => controller.abort(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(() => {
    const error = new IsletError('timeout', `The sandbox did not answer within ${DIAL_TIMEOUT_MS / 1000} s.`)
    controller.abort(error)
    late.reject(error)
  }, DIAL_TIMEOUT_MS)
  try {
    return await Promise.race([dial(sandboxes, record, controller.signal), late.promise])
  } catch (error) {
    throw forVisitors(error, record)
  } finally {
    clearTimeout(timer)
  }
}

/** Wakes the sandbox and keeps it from being idle until the connection ends. */
async function dial(
  sandboxes: Sandboxes,
  { sandboxId, port }: PreviewRecord,
  signal: AbortSignal,
): Promise<Reached> {
  const use = await sandboxes.use(sandboxId, { kind: 'preview', id: String(port) })
  try {
    const { machine } = await sandboxes.running(sandboxId)
    if (machine.ownPorts.has(port)) throw new IsletError('port_not_listening')
    const connection = await machine.guest.dial(port, { signal })
    connection.once('close', () => use[Symbol.dispose]())
    return { connection, autoResumed: use.autoResumed }
  } catch (error) {
    use[Symbol.dispose]()
    throw error
  }
}

/** Rewrites the error for the visitor of the page; reveals nothing about the server. */
function forVisitors(error: unknown, { port }: PreviewRecord): unknown {
  if (!(error instanceof IsletError)) return error
  const status = error.details?.status
  switch (error.code) {
    case 'port_not_listening':
      return new IsletError('port_not_listening', `Nothing listens on port ${port} of this sandbox.`, {
        hint: 'Start the program that should, on 127.0.0.1, ::1 or all addresses.',
      })
    case 'invalid_state':
      if (status === 'stopped') return gone()
      return new IsletError('invalid_state', `This sandbox is ${status}.`, { details: { status } })
    case 'sandbox_not_found':
      return gone()
    case 'sandbox_lost':
      return new IsletError('sandbox_lost', 'This sandbox cannot be reached right now.')
    case 'limit_exceeded':
      return new IsletError('limit_exceeded', 'This sandbox has too many open connections.')
    case 'timeout':
      return new IsletError('timeout', 'This sandbox did not answer in time.')
    default:
      return error
  }
}

export function gone(): IsletError {
  return new IsletError('invalid_state', 'This sandbox is gone.', { details: { status: 'stopped' } })
}
