import type { ServiceInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../../args/sandbox.ts'
import type { JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge } from '../../format.ts'
import { paint, print, printJson } from '../../output.ts'
import { clean } from '../../table.ts'
import { serviceCommand } from './service-command.ts'

export function info(): Command {
  return serviceCommand('info', 'Show one service.', 'islet service info dev web').action(
    async (text: string, name: string, flags: JsonFlag) => {
      const sandbox = await findSandbox(connect(), text)
      const service = await sandbox.service.retrieve(name)
      if (flags.json) return printJson(service)
      for (const [title, value] of linesOf(service)) {
        if (value) print(`${paint('dim', title.padEnd(11))} ${clean(value)}`)
      }
    },
  )
}

function linesOf(service: ServiceInfo): [string, string | undefined][] {
  const { status, reason, pid, restartPolicy, maxRestarts, restartCount, healthy, healthStatus } = service
  const most = maxRestarts > 0 ? ` of at most ${maxRestarts}` : ''
  return [
    ['name', service.name],
    ['status', reason ? `${status} (${reason})` : status],
    ['url', service.url],
    ['port', service.port?.toString()],
    ['command', service.start],
    ['install', service.install],
    ['path', service.path],
    ['env file', service.envFile],
    // Values may be secrets.
    ['environment', Object.keys(service.environment).join(' ')],
    ['process', service.processId && (pid ? `${service.processId}, pid ${pid}` : service.processId)],
    ['restart', `${restartPolicy}, ${restartCount}${most} so far`],
    ['autostart', service.autostart ? 'on' : 'off'],
    ['keep awake', service.keepAwake ? 'yes' : 'no: the sandbox may go to sleep while it runs'],
    ['health', healthy === undefined ? undefined : `${healthy ? 'good' : 'bad'} (${healthStatus})`],
    ['created', `${service.createdAt} (${formatAge(service.createdAt)} ago)`],
    ['changed', `${service.updatedAt} (${formatAge(service.updatedAt)} ago)`],
  ]
}
