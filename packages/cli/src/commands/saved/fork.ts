import type { ForkResult, Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { withSandbox } from '../../args/find.ts'
import { integer } from '../../args/parse.ts'
import {
  addCopyOptions,
  addKeepAwakeOptions,
  type CopyFlags,
  toCopyOptions,
} from '../../args/sandbox-options.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { print, printJson, reportFailure } from '../../output.ts'

interface ForkFlags extends CopyFlags, JsonFlag {
  count?: number
}

export function fork(): Command {
  const made = sandboxCommand(
    'fork',
    'Copy a sandbox as it is now and print the ids of the copies. They inherit its settings.',
    'islet fork dev --count 3 --env ROLE=worker',
  ).option('-n, --count <count>', 'number of copies; default: 1', integer)
  return addCopyOptions(addKeepAwakeOptions(made)).action(withSandbox(action))
}

async function action(sandbox: Sandbox, flags: ForkFlags): Promise<void> {
  const results = await sandbox.fork({ ...toCopyOptions(flags), count: flags.count ?? 1 })
  if (results.some(({ ok }) => !ok)) process.exitCode = 1
  if (flags.json) {
    const { frozenMs, memory } = results
    return printJson({ forks: await Promise.all(results.map(toJson)), frozenMs, memory })
  }
  for (const result of results) {
    if (result.ok) print(result.sandbox.id)
    else reportFailure(result.error, { json: false })
  }
}

async function toJson(result: ForkResult) {
  if (result.ok) return { ok: true, sandbox: await result.sandbox.getInfo() }
  const { code, message, hint } = result.error
  return { ok: false, error: { code, message, hint } }
}
