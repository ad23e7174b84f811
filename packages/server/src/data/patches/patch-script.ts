// How a patch gets into bash. It comes through stdin between two marks, ended by a NUL, and is run only once all of it is
// there: a server that is killed while it sends leaves a piece without its second mark, and the next one sends it whole. What the
// script itself reads from stdin is empty.
import type { ProcessInfo } from '@islet/contract'

export const PATCH_TIMEOUT_MS = 10 * 60_000

// One line: bash counts the lines of the script from there.
const READ_AND_RUN = [
  `while IFS= read -r -d '' p; do [[ $p == "$1"*"$1" ]] && break; done`,
  `[[ $p == "$1"*"$1" ]] || { echo 'the script did not arrive' >&2; exit 125; }`,
  'exec </dev/null',
  `p=\${p#"$1"}`,
  `eval "set --; unset -v p; \${p%"$1"}"`,
].join('; ')

/** `mark` is in no script. The id of the patch is there for those who look at what runs. */
export function patchCommand(patchId: string, mark: string): string[] {
  return ['bash', '-c', `: ${patchId}; ${READ_AND_RUN}`, 'patch', mark]
}

export function patchInput(mark: string, script: string): string {
  return `${mark}${script}${mark}\0`
}

/** Null: its exit code says it all. */
export function whyFailed(result: ProcessInfo['result']): string | null {
  if (!result || result.exitCode === 0) return null
  if (result.timedOut) return `It took longer than ${PATCH_TIMEOUT_MS / 60_000} minutes.`
  if (result.oom) return 'It needed more memory than the sandbox has.'
  return result.signal === null ? null : `It was ended by ${result.signal}.`
}
