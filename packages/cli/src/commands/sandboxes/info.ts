import type { Sandbox, SandboxInfo, SandboxStatus } from '@islet/sdk'
import type { Command } from 'commander'
import { withSandbox } from '../../args/find.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { formatAwake, formatBytes, formatCpu, formatLeft, formatPast, formatTimeout } from '../../format.ts'
import { printJson } from '../../output.ts'
import { printFields } from '../../table.ts'

const LIVE: readonly SandboxStatus[] = ['running', 'paused', 'hibernated']

export function info(): Command {
  return sandboxCommand('info', 'Show a sandbox and its usage.', 'islet info dev').action(withSandbox(action))
}

async function action(sandbox: Sandbox, flags: JsonFlag): Promise<void> {
  const info = await sandbox.getInfo()
  const usage = LIVE.includes(info.status) ? await sandbox.usage() : undefined
  if (flags.json) return printJson({ ...info, ...(usage && { usage }) })
  const { resources, terminatesAt } = info
  printFields([
    ['id', info.id],
    ['name', info.name],
    ['status', info.reason ? `${info.status} (${info.reason})` : info.status],
    ['terminates', terminatesAt && `${terminatesAt} (in ${formatLeft(terminatesAt)})`],
    ['awake', info.awake && formatAwake(info.awake)],
    ['timeouts', timeouts(info)],
    ['origin', info.origin && `${info.origin.kind} ${info.origin.id}`],
    ['runtime', info.image ? `${info.runtime} (${info.image})` : info.runtime],
    ['engine', `${info.engine}, ${info.isolation}`],
    ['project', info.project],
    ['metadata', Object.keys(info.metadata).length > 0 ? JSON.stringify(info.metadata) : null],
    // Values may be secrets.
    ['env', Object.keys(info.env).join(' ')],
    ['user', `${info.user} in ${info.workdir}`],
    ['network', info.network.enabled ? 'on' : 'off'],
    ['url', info.url && `${info.url} (port ${info.network.port})`],
    ['cpu', formatCpu(resources.cpuMillis)],
    ['memory', of(usage?.memoryBytes, resources.memoryBytes)],
    ['disk', of(usage?.diskBytes, resources.diskBytes)],
    ['processes', usage ? `${usage.pids} of ${resources.pids}` : String(resources.pids)],
    ['created', formatPast(info.createdAt)],
    ['stopped', info.stoppedAt],
  ])
}

function timeouts({ timeouts: { idleMs, onIdle, executionMs, pausedMs } }: SandboxInfo): string {
  const idle = idleMs === 0 ? 'never' : `${formatTimeout(idleMs)}, then ${onIdle}`
  return `idle ${idle}; execution ${formatTimeout(executionMs)}; paused ${formatTimeout(pausedMs)}`
}

function of(used: number | undefined, limit: number): string {
  return used === undefined ? formatBytes(limit) : `${formatBytes(used)} of ${formatBytes(limit)}`
}
