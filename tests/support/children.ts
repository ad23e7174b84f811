// Programs that a test starts and reads to their end.
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'

export interface Outcome {
  code: number | null
  stdout: string
  stderr: string
}

/** Closes its stdin and waits for its end. */
export async function outcomeOf(child: ChildProcessWithoutNullStreams): Promise<Outcome> {
  child.stdin.end()
  const [stdout, stderr, [code]] = await Promise.all([
    child.stdout.setEncoding('utf8').toArray(),
    child.stderr.setEncoding('utf8').toArray(),
    once(child, 'close'),
  ])
  return { code, stdout: stdout.join(''), stderr: stderr.join('') }
}

/** Resolves when it has printed this on stdout. */
export async function printed(child: ChildProcessWithoutNullStreams, wanted: string): Promise<void> {
  let all = ''
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    all += text
    if (all.includes(wanted)) return
  }
  throw new Error(`It ended after: ${all}`)
}
