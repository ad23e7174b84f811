import type { Sandbox, ServiceInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { removeEach } from '../../args/each.ts'
import { withSandbox } from '../../args/find.ts'
import { group, type JsonFlag, sandboxCommand } from '../../command.ts'
import { formatAge, formatPast } from '../../format.ts'
import { type Colour, printJson, printResult, sayDropped } from '../../output.ts'
import { writeCaptured } from '../../stdio/capture.ts'
import { followOutput } from '../../stdio/pipe.ts'
import { type Column, type ListFlags, printFields, printList } from '../../table.ts'
import { install } from '../server/install.ts'
import { uninstall } from '../server/uninstall.ts'
import { start } from './service-start.ts'

interface LogsFlags extends JsonFlag {
  follow?: true
  install?: true
}

const columns: Column<ServiceInfo>[] = [
  ['NAME', ({ name }) => name],
  ['STATUS', ({ status }) => status, statusColour],
  ['PORT', ({ port }) => String(port ?? '-')],
  ['URL', ({ url }) => url ?? '-'],
  ['RESTARTS', ({ restartCount }) => String(restartCount)],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
  ['COMMAND', ({ start }) => start],
]

export function service(): Command {
  return group(
    'service',
    'Manage services of a sandbox; install and uninstall manage the server itself, with systemd.',
    'islet service start dev web --port 3000 --wait -- npm start',
    [start(), ls(), info(), logs(), restart(), stop(), rm(), install(), uninstall()],
  )
}

function ls(): Command {
  return sandboxCommand('ls', 'List the services of a sandbox.', 'islet service ls dev')
    .alias('list')
    .option('-q, --quiet', 'print only names')
    .action(
      withSandbox(async (sandbox: Sandbox, flags: ListFlags) => {
        const none = `${sandbox.id} has no services. islet service start --help shows how to start one.`
        printList(await sandbox.service.list(), flags, { columns, none, key: ({ name }) => name })
      }),
    )
}

function info(): Command {
  return serviceCommand('info', 'Show a service.', 'islet service info dev web').action(
    withSandbox(async (sandbox: Sandbox, name: string, flags: JsonFlag) => {
      const service = await sandbox.service.retrieve(name)
      if (flags.json) printJson(service)
      else printFields(fieldsOf(service))
    }),
  )
}

function logs(): Command {
  return serviceCommand('logs', 'Print the kept output of a service.', 'islet service logs dev web --follow')
    .option('-f, --follow', 'print new output, across restarts, until the service is stopped or has failed')
    .option('--install', 'print the output of its install command')
    .action(
      withSandbox(async (sandbox: Sandbox, name: string, flags: LogsFlags) => {
        if (flags.follow && !flags.json) return follow(sandbox, name, flags)
        const kept = await sandbox.service.logs(name, { install: flags.install })
        const { processId, stdout, stderr, truncated, droppedBytes } = kept
        if (flags.json) return printJson({ processId, stdout, stderr, truncated, droppedBytes })
        sayDropped(droppedBytes)
        await writeCaptured(kept, 'utf8')
      }),
    )
}

function restart(): Command {
  return serviceCommand('restart', 'Restart a service, or start it.', 'islet service restart dev web')
    .option('--wait', 'wait until it is ready')
    .action(
      withSandbox(async (sandbox: Sandbox, name: string, flags: JsonFlag & { wait?: true }) => {
        const restarted = await sandbox.service.restart(name)
        printResult(flags.wait ? await sandbox.service.waitFor(name) : restarted, name, flags)
      }),
    )
}

function stop(): Command {
  return serviceCommand(
    'stop',
    'Stop a service and wait until it has ended.',
    'islet service stop dev web',
  ).action(
    withSandbox(async (sandbox: Sandbox, name: string, flags: JsonFlag) =>
      printResult(await sandbox.service.stop(name), name, flags),
    ),
  )
}

function rm(): Command {
  return sandboxCommand('rm', 'Stop and remove services.', 'islet service rm dev web')
    .argument('<service...>', 'names')
    .action(
      withSandbox((sandbox: Sandbox, names: string[], flags: JsonFlag) =>
        removeEach(names, flags, (name) => sandbox.service.delete(name)),
      ),
    )
}

function serviceCommand(name: string, summary: string, example: string): Command {
  return sandboxCommand(name, summary, example).argument('<service>', 'name')
}

function statusColour({ status }: ServiceInfo): Colour {
  if (status === 'failed') return 'red'
  if (status === 'ready' || status === 'running') return 'green'
  return status === 'stopped' ? 'dim' : 'yellow'
}

function fieldsOf(service: ServiceInfo): [string, string | undefined][] {
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
    ['keep awake', service.keepAwake ? 'yes' : 'no: the sandbox may hibernate while it runs'],
    ['health', healthy === undefined ? undefined : `${healthy ? 'good' : 'bad'} (${healthStatus})`],
    ['created', formatPast(service.createdAt)],
    ['changed', formatPast(service.updatedAt)],
  ]
}

/** Each restart is a new process. */
async function follow(sandbox: Sandbox, name: string, flags: LogsFlags): Promise<void> {
  let seen: string | undefined
  for (;;) {
    const service = await sandbox.service.retrieve(name)
    const { processId } = flags.install ? await sandbox.service.logs(name, { install: true }) : service
    if (processId && processId !== seen) {
      seen = processId
      await followOutput(sandbox, processId)
      if (flags.install) return
    } else if (service.status === 'stopped' || service.status === 'failed') return
    else await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
