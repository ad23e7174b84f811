import { IsletError } from '@islet/sdk'
import { reworded } from '../reword.ts'

/** Gives errors the text `<what>: <HTTP status> <reason>`, as in "Failed to wake sandbox: 404 sandbox not found". */
export async function failing<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw reworded(error, (cause) => `${what}: ${cause.status} ${reasonOf(cause)}`)
  }
}

/** Callers look for "not found" in the text. */
function reasonOf({ code, message }: IsletError): string {
  return code.endsWith('_not_found') ? `${code.replaceAll('_', ' ')}: ${message}` : message
}

/** Milliseconds. */
export function seconds(value: number, name: string): number {
  if (Number.isFinite(value) && value >= 0) return Math.round(value * 1000)
  throw new IsletError('bad_request', `${name} is a number of seconds, not ${String(value).slice(0, 64)}.`, {
    hint: 'Give 300 for five minutes.',
  })
}

/** For methods that others do not await: a rejection is not unhandled. */
export function quiet<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {})
  return work
}
