// How a patch gets into bash: through stdin, between two marks and ended by a NUL. It runs only once it is complete: a server that
// is killed while it sends leaves a piece without its second mark, and the next server sends the whole script. The script itself
// has an empty stdin.
import type { ProcessInfo } from '@islet/contract'

export const PATCH_TIMEOUT_MS = 10 * 60_000

// On one line, because bash counts the lines of the script from there.
const READ_AND_RUN = [
  `while IFS= read -r -d '' p; do [[ $p == "$1"*"$1" ]] && break; done`,
  `[[ $p == "$1"*"$1" ]] || { echo 'the script did not arrive' >&2; exit 125; }`,
  'exec </dev/null',
  `p=\${p#"$1"}`,
  `eval "set --; unset -v p; \${p%"$1"}"`,
].join('; ')

/** `mark` occurs in no script. The id of the patch is for readers of process lists. */
export function patchCommand(patchId: string, mark: string): string[] {
  return ['bash', '-c', `: ${patchId}; ${READ_AND_RUN}`, 'patch', mark]
}

export function patchInput(mark: string, script: string): string {
  return `${mark}${script}${mark}\0`
}

/** Null: the exit code says enough. */
export function whyFailed(result: ProcessInfo['result']): string | null {
  if (!result || result.exitCode === 0) return null
  if (result.timedOut) return `It took longer than ${PATCH_TIMEOUT_MS / 60_000} minutes.`
  if (result.oom) return 'It needed more memory than the sandbox has.'
  return result.signal === null ? null : `It was ended by ${result.signal}.`
}
