import { LIMITS } from '@islet/contract/client'
import type { ProcessInfo, Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { findProcess, withSandbox } from '../../args/find.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { CliError } from '../../errors.ts'
import { printJson, sayDropped } from '../../output.ts'
import { CAPTURE, readable, writeCaptured } from '../../stdio/capture.ts'
import { followOutput } from '../../stdio/pipe.ts'

interface LogsFlags extends JsonFlag {
  follow?: true
}

export function logs(): Command {
  return sandboxCommand('logs', 'Print the kept output of a process.', 'islet logs dev prc-8f3 --follow')
    .argument('[process]', 'id, id prefix, or pid; default: the newest process')
    .option('-f, --follow', 'print new output until the process ends')
    .action(withSandbox(action))
}

async function action(sandbox: Sandbox, wanted: string | undefined, flags: LogsFlags): Promise<void> {
  const { id } = wanted === undefined ? await newest(sandbox) : await findProcess(sandbox, wanted)
  if (flags.follow && !flags.json) return followOutput(sandbox, id)
  if (flags.follow) await (await sandbox.exec.attach(id, { replay: false })).done
  const output = await sandbox.exec.output(id, { ...CAPTURE, maxBytes: LIMITS.execOutputBytes })
  if (flags.json) return printJson({ processId: id, ...readable(output, 'beginning') })
  sayDropped(output.droppedBytes)
  await writeCaptured(output)
}

async function newest(sandbox: Sandbox): Promise<ProcessInfo> {
  const [process] = await sandbox.exec.list({ limit: 1 })
  if (process) return process
  throw new CliError('process_not_found', `No process was started in ${sandbox.id} yet.`, {
    hint: `islet exec --detach ${sandbox.id} -- COMMAND starts one.`,
  })
}
