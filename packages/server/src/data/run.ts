// One-shot: make a sandbox, run one command, collect its output, remove the sandbox, whatever happens.
import type { RunParsed, RunResult } from '@islet/contract'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { ProcessService } from './data.ts'

export async function runOnce(
  sandboxes: Sandboxes,
  processes: Pick<ProcessService, 'exec'>,
  input: RunParsed,
  options: { signal?: AbortSignal } = {},
): Promise<RunResult> {
  const { command, cwd, env, timeout, stdin, stdinEncoding, encoding, maxOutputBytes, ...create } = input
  const sandbox = await sandboxes.create({ ...create, env }, options)
  try {
    using _use = await sandboxes.use(sandbox.id)
    const exec = { command, cwd, timeout, stdin, stdinEncoding, encoding, maxOutputBytes }
    return { sandboxId: sandbox.id, autoResumed: false, ...(await processes.exec(sandbox.id, exec, options)) }
  } finally {
    await sandboxes.delete(sandbox.id)
  }
}
