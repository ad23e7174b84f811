import type { Command } from 'commander'
import { findProcess } from '../args/process.ts'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { print, printJson } from '../output.ts'

export function kill(): Command {
  return command(
    'kill',
    'Signal a process of a sandbox and all it started.',
    'islet kill dev prc-8f3 --signal TERM',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<process>', 'id, beginning of an id, or pid')
    .option('-s, --signal <signal>', 'a name or number', 'SIGKILL')
    .action(async (text: string, process: string, flags: JsonFlag & { signal: string }) => {
      const sandbox = await findSandbox(connect(), text)
      const { id } = await findProcess(sandbox, process)
      const { signal } = flags
      await sandbox.exec.kill(id, /^\d+$/.test(signal) ? Number(signal) : signal.toUpperCase())
      if (flags.json) printJson(await sandbox.exec.get(id))
      else print(id)
    })
}
