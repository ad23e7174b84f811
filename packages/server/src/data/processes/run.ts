// One-shot: create a sandbox, run one command, collect its output, and always remove the sandbox.
import type { RunParsed, RunResult } from '@islet/contract'
import type { WorkOptions } from '../../control/runtimes/runtimes.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Told } from '../output/kept-bytes.ts'
import type { Processes } from './processes.ts'

/** If the server dies before it removes the sandbox, the idle timeout removes it after its command has ended. */
const LEFT_BEHIND = { idle: 60_000, onIdle: 'kill' } as const

export async function runOnce(
  sandboxes: Sandboxes,
  processes: Processes,
  input: RunParsed,
  options: WorkOptions = {},
): Promise<Told<RunResult>> {
  const { command, cwd, env, timeout, stdin, stdinEncoding, encoding, maxOutputBytes, ...create } = input
  const sandbox = await sandboxes.create({ ...create, env, keepAwake: false, timeout: LEFT_BEHIND }, options)
  try {
    using _use = await sandboxes.use(sandbox.id)
    const exec = { command, cwd, timeout, stdin, stdinEncoding, encoding, maxOutputBytes }
    return {
      sandboxId: sandbox.id,
      autoResumed: false,
      ...(await processes.exec(sandbox.id, exec, { signal: options.signal })),
    }
  } finally {
    await sandboxes.delete(sandbox.id)
  }
}
