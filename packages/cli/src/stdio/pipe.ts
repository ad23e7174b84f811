// A command in a sandbox with our stdin, stdout and stderr.
import type { AttachOptions, ExecSession } from '@islet/sdk'
import { onBrokenPipe, sayDropped, sayHint, writeAll } from '../output.ts'
import type { Signals } from './signals.ts'

export const hasPipedStdin = (): boolean => !process.stdin.isTTY

/** Answers with the exit code of the command. */
export async function followPiped(
  open: (handlers: AttachOptions) => Promise<ExecSession>,
  options: { stdin: boolean; signals: Signals },
): Promise<number> {
  const session = await open({
    onStdout: (data) => writeAll(process.stdout, data),
    onStderr: (data) => writeAll(process.stderr, data),
  })
  options.signals.passTo(session)
  sayDropped(session.droppedBytes)
  // Nobody reads on: the command learns it the way it would in a pipe, and we do not wait for it.
  const broken = new Promise<number>((resolve) => {
    onBrokenPipe(() => {
      const leave = () => resolve(141)
      session.kill('SIGPIPE').then(leave, leave)
    })
  })
  if (options.stdin) sendStdin(session).catch(() => {}) // the session's end says what happened
  try {
    const exitCode = await Promise.race([session.done, broken])
    // One whose reader is gone is still running, or has nobody to tell.
    const result = await Promise.race([session.result, undefined])
    if (result?.hint) sayHint(result.hint)
    return exitCode
  } finally {
    session.close()
    process.stdin.pause()
  }
}

async function sendStdin(session: ExecSession): Promise<void> {
  for await (const data of process.stdin) await session.sendStdin(data as Buffer)
  session.closeStdin()
}

/** All of stdin, for commands whose answer is one JSON value. */
export async function readStdin(): Promise<Uint8Array> {
  const parts: Buffer[] = []
  for await (const data of process.stdin) parts.push(data as Buffer)
  return Buffer.concat(parts)
}
