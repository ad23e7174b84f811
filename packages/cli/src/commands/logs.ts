import { LIMITS } from '@islet/contract/client'
import type { ProcessInfo, Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { findProcess } from '../args/process.ts'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { CliError } from '../errors.ts'
import { printJson, sayDropped, writeAll } from '../output.ts'
import { CAPTURE, readable } from '../stdio/capture.ts'

interface LogsFlags extends JsonFlag {
  follow?: true
}

export function logs(): Command {
  return command('logs', 'Print what is kept of the output of a process.', 'islet logs dev prc-8f3 --follow')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('[process]', 'id, beginning of an id, or pid; default: the newest')
    .option('-f, --follow', 'go on until it ends')
    .action(async (text: string, wanted: string | undefined, flags: LogsFlags) => {
      const sandbox = await findSandbox(connect(), text)
      const { id } = wanted === undefined ? await newest(sandbox) : await findProcess(sandbox, wanted)
      if (flags.follow && !flags.json) return follow(sandbox, id)
      if (flags.follow) await (await sandbox.exec.attach(id, { replay: false })).done
      const output = await sandbox.exec.output(id, { ...CAPTURE, maxBytes: LIMITS.execOutputBytes })
      if (flags.json) return printJson({ processId: id, ...readable(output, 'beginning') })
      const { stdout, stderr, droppedBytes } = output
      sayDropped(droppedBytes)
      await writeAll(process.stdout, Buffer.from(stdout, 'base64'))
      await writeAll(process.stderr, Buffer.from(stderr, 'base64'))
    })
}

async function newest(sandbox: Sandbox): Promise<ProcessInfo> {
  const [process] = await sandbox.exec.list({ limit: 1 })
  if (process) return process
  throw new CliError('process_not_found', `Nothing ran in ${sandbox.id} yet.`, {
    hint: `islet exec --detach ${sandbox.id} -- COMMAND starts something.`,
  })
}

async function follow(sandbox: Sandbox, id: string): Promise<void> {
  const session = await sandbox.exec.attach(id, {
    onStdout: (data) => writeAll(process.stdout, data),
    onStderr: (data) => writeAll(process.stderr, data),
  })
  sayDropped(session.droppedBytes)
  await session.done
}
