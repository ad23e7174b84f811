import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import type { JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { printService, serviceCommand } from './service-command.ts'

export function restart(): Command {
  return serviceCommand(
    'restart',
    'Stop a service if it runs, and start it.',
    'islet service restart dev web',
  )
    .option('--wait', 'until it is ready')
    .action(async (text: string, name: string, flags: JsonFlag & { wait?: true }) => {
      const sandbox = await findSandbox(connect(), text)
      const restarted = await sandbox.service.restart(name)
      printService(flags.wait ? await sandbox.service.waitFor(name) : restarted, flags)
    })
}
