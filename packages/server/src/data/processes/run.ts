// One-shot: create a sandbox, run one command, collect its output, and always remove the sandbox.
import type { RunParsed, RunResult } from '@islet/contract'
import type { WorkOptions } from '../../control/runtimes/runtimes.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Told } from '../output/kept-bytes.ts'
import type { AttachEvent } from './attachment.ts'
import type { StreamedCommand } from './commands.ts'
import type { Processes } from './processes.ts'

/** If the removal fails, the idle timeout removes it. */
const LEFT_BEHIND = { idle: 60_000, onIdle: 'kill' } as const

export async function runOnce(
  sandboxes: Sandboxes,
  processes: Processes,
  input: RunParsed,
  options: WorkOptions = {},
): Promise<Told<RunResult>> {
  const { create, exec } = parts(input)
  const { id } = await sandboxes.create(create, { ...options, oneShot: true })
  try {
    using _use = await sandboxes.use(id)
    const { signal } = options
    return { sandboxId: id, autoResumed: false, ...(await processes.exec(id, exec, { signal })) }
  } finally {
    await sandboxes.delete(id)
  }
}

/** The same with the output as it comes. The sandbox is removed before the last event. */
export async function streamOnce(
  sandboxes: Sandboxes,
  processes: Processes,
  input: RunParsed,
  options: { signal: AbortSignal },
): Promise<StreamedCommand & { sandboxId: string }> {
  const { create, exec } = parts(input)
  const { id } = await sandboxes.create(create, { ...options, oneShot: true })
  try {
    // Ends with the sandbox.
    await sandboxes.use(id)
    const { processId, events } = await processes.commands.stream(id, exec, options)
    return { sandboxId: id, processId, events: removedBefore(events, () => sandboxes.delete(id)) }
  } catch (error) {
    await sandboxes.delete(id)
    throw error
  }
}

async function* removedBefore(
  events: AsyncIterable<AttachEvent>,
  remove: () => Promise<unknown>,
): AsyncGenerator<AttachEvent> {
  let isRemoved = false
  try {
    for await (const event of events) {
      if (event.type === 'exit') {
        isRemoved = true
        await remove()
      }
      yield event
    }
  } finally {
    if (!isRemoved) await remove()
  }
}

function parts(input: RunParsed) {
  const {
    command,
    cwd,
    timeout,
    keepOutput,
    stdin,
    stdinEncoding,
    stream,
    encoding,
    maxOutputBytes,
    ...rest
  } = input
  return {
    create: { ...rest, keepAwake: false, timeout: LEFT_BEHIND },
    exec: { command, cwd, timeout, keepOutput, stdin, stdinEncoding, stream, encoding, maxOutputBytes },
  }
}
