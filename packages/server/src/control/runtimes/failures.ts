// Why packages could not be installed, from the output of the installer.
import { IsletError } from '@islet/contract'
import type { Ran } from './builder.ts'

export type Tool = 'apt' | 'npm' | 'pip'

/** The line that says what is wrong. */
const TELLING: Record<Tool, RegExp> = {
  apt: /^(E:|Err:|dpkg: error)/,
  npm: /^npm (?:error|ERR!) (?!(?:code|errno|syscall|path|dest) |A complete log)\S/,
  pip: /^(ERROR|error):/,
}
const NETWORK =
  /could not resolve|connection (?:failed|refused|reset|timed out)|temporary failure|unable to connect|network is unreachable|failed to fetch|name or service not known|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|NewConnectionError|ConnectTimeoutError/i
const NOT_FOUND =
  /Unable to locate package|has no installation candidate|Version .* was not found|E404|ETARGET|No matching (?:version|distribution) found/i
const FULL = /no space left on device|disk quota exceeded|ENOSPC|EDQUOT/i
const HAS: Record<Tool, string> = {
  apt: 'Choose a runtime based on Debian or Ubuntu; islet runtimes lists them.',
  npm: 'Choose a runtime with Node, such as node:24, or build the Debian base: islet image build base.',
  pip: 'Choose a runtime with Python, such as python:3.14, or build the Debian base: islet image build base.',
}

type Reason = 'not_found' | 'network' | 'disk' | 'failed'

const HINTS: Record<Reason, string> = {
  not_found: 'Check the names and versions.',
  network: 'The package registry could not be reached from a sandbox with network. Try again later.',
  disk: 'The packages need more room than a sandbox, or the disk of the server, has.',
  failed: 'The details have the end of the output of the installer.',
}

export function packagesFailed(tool: Tool, { exitCode, lines }: Ran): IsletError {
  const telling =
    lines.find((line) => TELLING[tool].test(line)) ?? lines.at(-1) ?? `it ended with code ${exitCode}`
  const reason = reasonOf(lines.join('\n'))
  return new IsletError('packages_failed', `${tool} cannot install the packages: ${telling.slice(0, 500)}`, {
    hint: HINTS[reason],
    details: { tool, reason, exitCode, output: lines },
  })
}

export function toolMissing(tool: Tool, command: string): IsletError {
  return new IsletError('packages_failed', `The runtime has no ${command}, which installs these packages.`, {
    hint: HAS[tool],
    details: { tool, reason: 'missing_tool' },
  })
}

export function tookTooLong(limitMs: number): IsletError {
  const minutes = limitMs / 60_000
  return new IsletError('packages_failed', `The packages were not installed within ${minutes} minutes.`, {
    hint: 'Install fewer at once, or install them in a sandbox and make a snapshot of it.',
    details: { reason: 'timeout' },
  })
}

function reasonOf(output: string): Reason {
  if (FULL.test(output)) return 'disk'
  // pip also says that nothing matches if it cannot reach the registry.
  if (NETWORK.test(output)) return 'network'
  return NOT_FOUND.test(output) ? 'not_found' : 'failed'
}
