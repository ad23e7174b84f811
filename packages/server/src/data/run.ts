// One-shot: make a sandbox, run one command, collect its output, remove the sandbox, whatever happens.
import type { RunParsed, RunResult } from '@islet/contract'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Processes } from './processes.ts'

export async function runOnce(
  services: { sandboxes: Sandboxes; processes: Processes },
  input: RunParsed,
  options: { signal?: AbortSignal } = {},
): Promise<RunResult> {
  const { command, cwd, env, timeout, stdin, stdinEncoding, encoding, maxOutputBytes, ...create } = input
  const sandbox = await services.sandboxes.create({ ...create, env }, options)
  try {
    const exec = { command, cwd, timeout, stdin, stdinEncoding, encoding, maxOutputBytes }
    return { sandboxId: sandbox.id, ...(await services.processes.exec(sandbox.id, exec, options)) }
  } finally {
    await services.sandboxes.delete(sandbox.id)
  }
}
