// Which port a service is given, and which one it has really taken.
import { IsletError } from '@islet/contract'
import type { OpenPort } from '../ports.ts'

/** How many ports after the wanted one are looked at. */
const SEARCH = 1000
const LAST = 65_535

/** The wanted port, or the next one that is not taken. */
export function choosePort(wanted: number, options: { taken: ReadonlySet<number>; strict: boolean }): number {
  const { taken, strict } = options
  if (!taken.has(wanted)) return wanted
  const last = strict ? wanted : Math.min(wanted + SEARCH, LAST)
  for (let port = wanted + 1; port <= last; port++) if (!taken.has(port)) return port
  throw new IsletError(
    'port_taken',
    strict ? `Port ${wanted} is taken.` : `Ports ${wanted} to ${last} are taken.`,
  )
}

/** Of the ports that the session listens on: the assigned one, else the lowest. One that can be dialed comes first. */
export function ownPort(
  open: readonly OpenPort[],
  session: number,
  assigned: number | null,
): OpenPort | undefined {
  const rank = ({ port, address }: OpenPort) => [port === assigned ? 0 : 1, port, dialable(address) ? 0 : 1]
  return open
    .filter((port) => port.session === session)
    .toSorted((a, b) => compare(rank(a), rank(b)))
    .at(0)
}

/** Where a listener is reached on the loopback; undefined: nowhere there. */
export function dialable(address: string): '127.0.0.1' | '::1' | undefined {
  if (address === '::1' || address === '::') return '::1'
  return /^(::ffff:)?(127\.0\.0\.1|0\.0\.0\.0)$/.test(address) ? '127.0.0.1' : undefined
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index])
  return at < 0 ? 0 : a[at]! - b[at]!
}
