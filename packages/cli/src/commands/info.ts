import type { SandboxInfo, SandboxStatus } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { formatAge, formatAwake, formatBytes, formatCpu, formatLeft, formatTimeout } from '../format.ts'
import { paint, print, printJson } from '../output.ts'
import { clean } from '../table.ts'

const LIVE: readonly SandboxStatus[] = ['running', 'paused', 'hibernated']

export function info(): Command {
  return command('info', 'Show one sandbox and what it uses.', 'islet info dev')
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .action(async (text: string, flags: JsonFlag) => {
      const sandbox = await findSandbox(connect(), text)
      const info = await sandbox.getInfo()
      const usage = LIVE.includes(info.status) ? await sandbox.usage() : undefined
      if (flags.json) return printJson({ ...info, ...(usage && { usage }) })
      const { resources } = info
      const lines: [string, string | null | undefined][] = [
        ['id', info.id],
        ['name', info.name],
        ['status', info.reason ? `${info.status} (${info.reason})` : info.status],
        ['terminates', terminates(info)],
        ['awake', info.awake && formatAwake(info.awake)],
        ['timeouts', timeouts(info)],
        ['origin', info.origin && `${info.origin.kind} ${info.origin.id}`],
        ['runtime', info.image ? `${info.runtime} (${info.image})` : info.runtime],
        ['engine', `${info.engine}, ${info.isolation}`],
        ['project', info.project],
        ['metadata', Object.keys(info.metadata).length > 0 ? JSON.stringify(info.metadata) : null],
        // Values may be secrets.
        ['env', Object.keys(info.env).join(' ') || null],
        ['user', `${info.user} in ${info.workdir}`],
        ['network', info.network.enabled ? 'on' : 'off'],
        ['cpu', formatCpu(resources.cpuMillis)],
        ['memory', of(usage?.memoryBytes, resources.memoryBytes)],
        ['disk', of(usage?.diskBytes, resources.diskBytes)],
        ['processes', usage ? `${usage.pids} of ${resources.pids}` : String(resources.pids)],
        ['created', `${info.createdAt} (${formatAge(info.createdAt)} ago)`],
        ['stopped', info.stoppedAt],
      ]
      for (const [name, value] of lines) {
        if (value) print(`${paint('dim', name.padEnd(10))} ${clean(value)}`)
      }
    })
}

function terminates({ terminatesAt }: SandboxInfo): string | null {
  return terminatesAt && `${terminatesAt} (in ${formatLeft(terminatesAt)})`
}

function timeouts({ timeouts: { idleMs, onIdle, executionMs, pausedMs } }: SandboxInfo): string {
  const idle = idleMs === 0 ? 'never' : `${formatTimeout(idleMs)}, then ${onIdle}`
  return `idle ${idle}; execution ${formatTimeout(executionMs)}; paused ${formatTimeout(pausedMs)}`
}

function of(used: number | undefined, limit: number): string {
  return used === undefined ? formatBytes(limit) : `${formatBytes(used)} of ${formatBytes(limit)}`
}
