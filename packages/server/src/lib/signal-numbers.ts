import { constants } from 'node:os'
import { IsletError } from '@islet/contract'

/** Linux numbers; the real-time ones are glibc's. */
const REAL_TIME_MIN = 34
const REAL_TIME_MAX = 64

/** 15 from 15, 'SIGTERM' or 'TERM'. */
export function signalNumber(signal: number | string): number {
  if (typeof signal === 'number') return signal
  const name = signal.replace(/^SIG/, '')
  const known = (constants.signals as Record<string, number>)[`SIG${name}`] ?? realTime(name)
  if (known !== undefined) return known
  throw new IsletError('bad_request', `signal: there is no signal ${signal}.`)
}

function realTime(name: string): number | undefined {
  const match = /^RT(MIN|MAX)(?:([+-])(\d+))?$/.exec(name)
  if (!match) return undefined
  const base = match[1] === 'MIN' ? REAL_TIME_MIN : REAL_TIME_MAX
  const number = base + Number(`${match[2] ?? '+'}${match[3] ?? 0}`)
  return number >= REAL_TIME_MIN && number <= REAL_TIME_MAX ? number : undefined
}
