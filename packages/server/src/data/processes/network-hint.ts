// A hint for commands that failed because their sandbox has no network: their own messages rarely make that clear.
import type { SandboxRecord } from '../../db/sandboxes.ts'
import type { OutputLog } from '../output/output-log.ts'
import type { ProcessResult } from './tracked.ts'

export const NETWORK_HINT = 'This sandbox has no network; create it with network or run islet network on'

/** Only the end of the output is searched: programs say last why they failed. */
const LOOKED_AT_BYTES = 8 * 1024

/** Messages of programs when a name cannot be resolved or an address has no route. */
const SAYINGS: readonly RegExp[] = [
  /could not resolve (?:host|proxy|')/i, // curl, git, apt
  /temporary failure (?:in name resolution|resolving)/i, // the C library, apt
  /name or service not known|nodename nor servname provided|no address associated with hostname/i, // the C library
  /\b(?:EAI_AGAIN|ENOTFOUND|ENETUNREACH)\b/, // Node, npm
  /unable to resolve host/i, // wget
  /dial tcp: lookup |: no such host\b/, // Go
  /\bbad address '/, // busybox
  /failed to (?:resolve '|lookup address information)/i, // pip, cargo
  /\bnetwork is unreachable/i,
  /\bUnknownHostException\b/, // Java
]

/** Adds the hint to the result of a failed command in a sandbox without network. */
export function withHint(
  result: ProcessResult,
  { network, isolation }: Pick<SandboxRecord, 'network' | 'isolation'>,
  log: OutputLog,
): ProcessResult {
  // Without isolation a sandbox uses the network of the machine.
  if (result.exitCode === 0 || network.enabled || isolation === 'none') return result
  const hint = networkHint(log)
  return hint === undefined ? result : { ...result, hint }
}

export function networkHint(log: OutputLog): string | undefined {
  const end = Array.from(log.open(LOOKED_AT_BYTES) ?? [], ({ bytes }) => bytes)
  return showsNoNetwork(Buffer.concat(end).toString('latin1')) ? NETWORK_HINT : undefined
}

export function showsNoNetwork(text: string): boolean {
  return SAYINGS.some((saying) => saying.test(text))
}
