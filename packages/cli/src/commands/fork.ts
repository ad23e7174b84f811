import type { ForkResult } from '@islet/sdk'
import type { Command } from 'commander'
import { integer } from '../args/parse.ts'
import { findSandbox } from '../args/sandbox.ts'
import { addCopyOptions, type CopyFlags, toCopyOptions } from '../args/sandbox-options.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { print, printJson, reportFailure } from '../output.ts'

export function fork(): Command {
  return addCopyOptions(
    command(
      'fork',
      'Make copies of a sandbox as it is now and print their ids. What is not given is as it is there.',
      'islet fork dev --count 3 --env ROLE=worker',
    )
      .argument('<sandbox>', 'id, beginning of an id, or name')
      .option('-n, --count <count>', 'how many; default: 1', integer)
      .option('--keep-awake', 'they are never idle')
      .option('--no-keep-awake', 'they hibernate when they are idle'),
  ).action(async (text: string, flags: CopyFlags & JsonFlag & { count?: number }) => {
    const sandbox = await findSandbox(connect(), text)
    const results = await sandbox.fork({ ...toCopyOptions(flags), count: flags.count ?? 1 })
    if (results.some(({ ok }) => !ok)) process.exitCode = 1
    if (flags.json) {
      const { frozenMs, memory } = results
      return printJson({ forks: await Promise.all(results.map(seen)), frozenMs, memory })
    }
    for (const result of results) {
      if (result.ok) print(result.sandbox.id)
      else reportFailure(result.error, { json: false })
    }
  })
}

async function seen(result: ForkResult) {
  if (result.ok) return { ok: true, sandbox: await result.sandbox.getInfo() }
  const { code, message, hint } = result.error
  return { ok: false, error: { code, message, hint } }
}
