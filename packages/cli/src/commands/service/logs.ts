import type { Sandbox, ServiceInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import type { JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { printJson, sayDropped, writeAll } from '../../output.ts'
import { serviceCommand } from './service-command.ts'

interface LogsFlags extends JsonFlag {
  follow?: true
  install?: true
}

export function logs(): Command {
  return serviceCommand(
    'logs',
    'Print what is kept of the output of a service.',
    'islet service logs dev web --follow',
  )
    .option('-f, --follow', 'go on, over restarts, until it is stopped or has failed')
    .option('--install', 'of its install command')
    .action(async (text: string, name: string, flags: LogsFlags) => {
      const sandbox = await findSandbox(connect(), text)
      if (flags.follow && !flags.json) return follow(sandbox, name, flags)
      const { processId, stdout, stderr, truncated, droppedBytes } = await sandbox.service.logs(name, {
        install: flags.install,
      })
      if (flags.json) return printJson({ processId, stdout, stderr, truncated, droppedBytes })
      sayDropped(droppedBytes)
      await writeAll(process.stdout, Buffer.from(stdout))
      await writeAll(process.stderr, Buffer.from(stderr))
    })
}

async function follow(sandbox: Sandbox, name: string, flags: LogsFlags): Promise<void> {
  let seen: string | undefined
  for (;;) {
    const service = await sandbox.service.retrieve(name)
    const { processId } = flags.install ? await sandbox.service.logs(name, { install: true }) : service
    if (processId && processId !== seen) {
      seen = processId
      await attach(sandbox, processId)
      if (flags.install) return
    } else if (isOver(service)) return
    else await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function attach(sandbox: Sandbox, processId: string): Promise<void> {
  const session = await sandbox.exec.attach(processId, {
    onStdout: (data) => writeAll(process.stdout, data),
    onStderr: (data) => writeAll(process.stderr, data),
  })
  sayDropped(session.droppedBytes)
  await session.done
}

function isOver({ status }: ServiceInfo): boolean {
  return status === 'stopped' || status === 'failed'
}
