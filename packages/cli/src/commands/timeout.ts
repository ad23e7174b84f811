import type { SandboxInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { doToEach } from '../args/sandboxes.ts'
import { addTimeoutOptions, type TimeoutFlags, toTimeouts } from '../args/timeouts.ts'
import { command, type JsonFlag } from '../command.ts'
import { formatTimeout } from '../format.ts'
import { type Column, printTable } from '../table.ts'

const COLUMNS: Column<SandboxInfo>[] = [
  ['ID', ({ id }) => id],
  ['IDLE', ({ timeouts }) => formatTimeout(timeouts.idleMs)],
  ['ON IDLE', ({ timeouts }) => timeouts.onIdle],
  ['EXECUTION', ({ timeouts }) => formatTimeout(timeouts.executionMs)],
  ['PAUSED', ({ timeouts }) => formatTimeout(timeouts.pausedMs)],
]

export function timeout(): Command {
  const made = command(
    'timeout',
    'Show or change what sandboxes do by themselves after a while.',
    'islet timeout dev --idle 30m --on-idle kill',
  ).argument('<sandbox...>', 'ids, beginnings of ids, or names')
  return addTimeoutOptions(made).action(async (texts: string[], flags: TimeoutFlags & JsonFlag) => {
    const change = toTimeouts(flags)
    await doToEach(texts, (sandbox) => (change ? sandbox.setTimeout(change) : sandbox.getInfo()), {
      json: flags.json,
      show: (done) => printTable(done, COLUMNS),
    })
  })
}
