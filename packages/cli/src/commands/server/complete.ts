import type { ClientOptions } from '@islet/sdk'
import { Command } from 'commander'
import { findSandbox, findSandboxId } from '../../args/find.ts'
import { complete, type Names } from '../../completion/complete.ts'
import { connect } from '../../connect.ts'
import { clean, formatCommand } from '../../format.ts'
import { print } from '../../output.ts'

/** A shell waits for this at every press of the Tab key. */
const TIMEOUT_MS = 1000
const NO_RETRY: ClientOptions = { retries: 0 }

/** Hidden. The scripts of `islet completion` call it. It prints nothing if something fails. */
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
  async sandbox() {
    const { sandboxes } = await connect(NO_RETRY).sandboxes.list(withTimeout())
    return sandboxes.flatMap(({ id, name, runtime }) => [
      { text: id, summary: name ?? runtime },
      ...(name === null ? [] : [{ text: name, summary: id }]),
    ])
  },
  async process(text = '') {
    const sandbox = await findSandbox(connect(NO_RETRY), text)
    const processes = await sandbox.exec.list(withTimeout())
    return processes.map(({ id, command }) => ({ text: id, summary: formatCommand(command) }))
  },
  async service(text = '') {
    const sandbox = await findSandbox(connect(NO_RETRY), text)
    const services = await sandbox.service.list(withTimeout())
    return services.map(({ name, status }) => ({ text: name, summary: status }))
  },
  async checkpoint(text) {
    const islet = connect(NO_RETRY)
    if (text === undefined) {
      const { checkpoints } = await islet.checkpoints.list(withTimeout())
      return checkpoints.map(({ id, name, sandboxId }) => ({ text: id, summary: `${name} of ${sandboxId}` }))
    }
    const checkpoints = await islet.checkpoints.list(await findSandboxId(islet, text), withTimeout())
    return checkpoints.flatMap(({ id, name }) => [
      { text: name, summary: id },
      { text: id, summary: name },
    ])
  },
  async snapshot() {
    const { snapshots } = await connect(NO_RETRY).snapshots.list(withTimeout())
    return snapshots.flatMap(({ id, tag, name }) => [
      ...(tag === null ? [] : [{ text: tag, summary: name ?? id }]),
      { text: id, summary: tag ?? name ?? '' },
    ])
  },
  async runtime() {
    const runtimes = await connect(NO_RETRY).runtimes.list(withTimeout())
    return runtimes.map(({ name, description }) => ({ text: name, summary: description ?? '' }))
  },
  async project() {
    const options = { status: 'all', limit: 1000, ...withTimeout() } as const
    const { sandboxes } = await connect(NO_RETRY).sandboxes.list(options)
    const projects = new Set(sandboxes.flatMap(({ project }) => project ?? []))
    return [...projects].sort().map((text) => ({ text, summary: '' }))
  },
}

function withTimeout(): { signal: AbortSignal } {
  return { signal: AbortSignal.timeout(TIMEOUT_MS) }
}
