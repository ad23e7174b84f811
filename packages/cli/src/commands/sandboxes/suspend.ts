// The verbs that suspend sandboxes and let them run again.
import type { Sandbox, SandboxInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { forEachSandbox } from '../../args/each.ts'
import { lasting } from '../../args/parse.ts'
import { type JsonFlag, sandboxesCommand } from '../../command.ts'
import { formatLeft } from '../../format.ts'
import { print, say } from '../../output.ts'

export const pause = (): Command =>
  verb(
    'pause',
    'Freeze sandboxes; their processes keep their memory. The next use resumes a sandbox.',
    (sandbox) => sandbox.pause(),
    showPaused,
  )

export const resume = (): Command =>
  verb('resume', 'Let paused sandboxes run again.', (sandbox) => sandbox.resume())

export const hibernate = (): Command =>
  verb(
    'hibernate',
    'Suspend sandboxes and free their memory if the server can. The next use wakes a sandbox.',
    (sandbox) => sandbox.hibernate(),
  )

export function wake(): Command {
  return sandboxesCommand('wake', 'Wake hibernated sandboxes.', 'islet wake dev --timeout 30m')
    .option('--timeout <duration>', 'new idle timeout, like 10m; 0 is never', lasting)
    .action(async (texts: string[], { timeout, json }: JsonFlag & { timeout?: number }) => {
      await forEachSandbox(texts, (sandbox) => sandbox.wake({ timeout }), { json })
    })
}

function verb(
  name: string,
  summary: string,
  work: (sandbox: Sandbox) => Promise<SandboxInfo>,
  show?: (done: SandboxInfo[]) => void,
): Command {
  return sandboxesCommand(name, summary, `islet ${name} dev`).action(
    async (texts: string[], { json }: JsonFlag) => forEachSandbox(texts, work, { json, show }),
  )
}

function showPaused(done: SandboxInfo[]): void {
  for (const { id, terminatesAt } of done) {
    print(id)
    if (terminatesAt) say(`${id} is removed in ${formatLeft(terminatesAt)}, unless it is resumed before.`)
  }
}
