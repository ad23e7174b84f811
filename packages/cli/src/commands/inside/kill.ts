import type { Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { findProcess, withSandbox } from '../../args/find.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { print, printJson } from '../../output.ts'

export function kill(): Command {
  return sandboxCommand(
    'kill',
    'Send a signal to a process of a sandbox and to its children.',
    'islet kill dev prc-8f3 --signal TERM',
  )
    .argument('<process>', 'id, id prefix, or pid')
    .option('-s, --signal <signal>', 'name or number', 'SIGKILL')
    .action(
      withSandbox(async (sandbox: Sandbox, text: string, flags: JsonFlag & { signal: string }) => {
        const { id } = await findProcess(sandbox, text)
        const { signal } = flags
        await sandbox.exec.kill(id, /^\d+$/.test(signal) ? Number(signal) : signal.toUpperCase())
        if (flags.json) printJson(await sandbox.exec.get(id))
        else print(id)
      }),
    )
}
