import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import type { JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { printService, serviceCommand } from './service-command.ts'

export function stop(): Command {
  return serviceCommand(
    'stop',
    'Stop a service and wait until it has ended.',
    'islet service stop dev web',
  ).action(async (text: string, name: string, flags: JsonFlag) => {
    const sandbox = await findSandbox(connect(), text)
    printService(await sandbox.service.stop(name), flags)
  })
}
