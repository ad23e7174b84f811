// A command in a sandbox with our stdin, stdout and stderr.
import type { AttachOptions, ExecSession, Sandbox } from '@islet/sdk'
import { onBrokenPipe, sayDropped, sayHint, writeAll } from '../output.ts'
import type { Signals } from './signals.ts'

const TO_OUR_STREAMS: AttachOptions = {
  onStdout: (data) => writeAll(process.stdout, data),
  onStderr: (data) => writeAll(process.stderr, data),
}
/** 128 + SIGPIPE. */
const BROKEN_PIPE = 141

/** Answers with the exit code of the command. */
export async function followPiped(
  open: (handlers: AttachOptions) => Promise<ExecSession>,
  options: { stdin: boolean; signals: Signals },
): Promise<number> {
  const session = await open(TO_OUR_STREAMS)
  options.signals.passTo(session)
  sayDropped(session.droppedBytes)
  // If the reader of our output has gone, the command gets SIGPIPE, as in a pipe. We do not wait for its end.
  const broken = new Promise<number>((resolve) => {
    onBrokenPipe(() => {
      const leave = () => resolve(BROKEN_PIPE)
      session.kill('SIGPIPE').then(leave, leave)
    })
  })
  if (options.stdin) sendStdin(session).catch(() => {}) // session.done reports the failure
  try {
    const exitCode = await Promise.race([session.done, broken])
    // After a broken pipe the command may still run, and there is no result yet.
    const result = await Promise.race([session.result, undefined])
    if (result?.hint) sayHint(result.hint)
    return exitCode
  } finally {
    session.close()
    process.stdin.pause()
  }
}

/** Prints the output of a process that runs already, from what is kept of it to its end. */
export async function followOutput(sandbox: Sandbox, processId: string): Promise<void> {
  const session = await sandbox.exec.attach(processId, TO_OUR_STREAMS)
  sayDropped(session.droppedBytes)
  await session.done
}

async function sendStdin(session: ExecSession): Promise<void> {
  for await (const data of process.stdin) await session.sendStdin(data as Buffer)
  session.closeStdin()
}
