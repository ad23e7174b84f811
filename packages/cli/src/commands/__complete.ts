import { Command } from 'commander'
import { findSandbox, findSandboxId } from '../args/sandbox.ts'
import { complete, type Names } from '../completion/complete.ts'
import { connect } from '../connect.ts'
import { formatCommand } from '../format.ts'
import { print } from '../output.ts'
import { clean } from '../table.ts'

// A shell waits for this with every key press.
const PATIENCE_MS = 1000

/** Hidden: what the scripts of `islet completion` call. Says nothing when something is wrong. */
export function completeCommand(program: Command): Command {
  return new Command('__complete').argument('[words...]').action(async (words: string[]) => {
    try {
      const found = await complete(program, words, names)
      if (!found) return print(':files')
      for (const { text, summary } of found) print(summary ? `${text}\t${clean(summary)}` : text)
    } catch {
      process.exitCode = 1
    }
  })
}

const names: Names = {
  async sandboxes() {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const { sandboxes } = await connect({ retries: 0 }).sandboxes.list({ signal })
    return sandboxes.flatMap(({ id, name, runtime }) => [
      { text: id, summary: name ?? runtime },
      ...(name === null ? [] : [{ text: name, summary: id }]),
    ])
  },
  async processes(text) {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const sandbox = await findSandbox(connect({ retries: 0 }), text)
    const processes = await sandbox.exec.list({ signal })
    return processes.map(({ id, command }) => ({ text: id, summary: formatCommand(command) }))
  },
  async services(text) {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const sandbox = await findSandbox(connect({ retries: 0 }), text)
    const services = await sandbox.service.list({ signal })
    return services.map(({ name, status }) => ({ text: name, summary: status }))
  },
  async checkpoints(text) {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const islet = connect({ retries: 0 })
    if (text === undefined) {
      const { checkpoints } = await islet.checkpoints.list({ signal })
      return checkpoints.map(({ id, name, sandboxId }) => ({ text: id, summary: `${name} of ${sandboxId}` }))
    }
    const checkpoints = await islet.checkpoints.list(await findSandboxId(islet, text), { signal })
    return checkpoints.flatMap(({ id, name }) => [
      { text: name, summary: id },
      { text: id, summary: name },
    ])
  },
  async snapshots() {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const { snapshots } = await connect({ retries: 0 }).snapshots.list({ signal })
    return snapshots.flatMap(({ id, tag, name }) => [
      ...(tag === null ? [] : [{ text: tag, summary: name ?? id }]),
      { text: id, summary: tag ?? name ?? '' },
    ])
  },
  async runtimes() {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const runtimes = await connect({ retries: 0 }).runtimes.list({ signal })
    return runtimes.map(({ name, description }) => ({ text: name, summary: description ?? '' }))
  },
  async projects() {
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const { sandboxes } = await connect({ retries: 0 }).sandboxes.list({ status: 'all', limit: 1000, signal })
    const projects = new Set(sandboxes.flatMap(({ project }) => project ?? []))
    return [...projects].sort().map((text) => ({ text, summary: '' }))
  },
}
