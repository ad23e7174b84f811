import { Command } from 'commander'
import { info } from './service/info.ts'
import { install } from './service/install.ts'
import { logs } from './service/logs.ts'
import { ls } from './service/ls.ts'
import { restart } from './service/restart.ts'
import { rm } from './service/rm.ts'
import { start } from './service/start.ts'
import { stop } from './service/stop.ts'
import { uninstall } from './service/uninstall.ts'

const COMMANDS = [start, ls, info, logs, restart, stop, rm, install, uninstall]

export function service(): Command {
  const group = new Command('service')
    .description(
      'Programs of a sandbox that are kept running; install and uninstall: the server itself, by systemd.',
    )
    .enablePositionalOptions()
  group.addHelpText('after', '\nExample:\n  islet service start dev web --port 3000 --wait -- npm start')
  for (const make of COMMANDS) group.addCommand(make())
  return group
}
