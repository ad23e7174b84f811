import type { SandboxInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { forEachSandbox } from '../../args/each.ts'
import { addTimeoutOptions, type TimeoutFlags, toTimeouts } from '../../args/sandbox-options.ts'
import { type JsonFlag, sandboxesCommand } from '../../command.ts'
import { formatTimeout } from '../../format.ts'
import { type Column, printTable } from '../../table.ts'

const COLUMNS: Column<SandboxInfo>[] = [
  ['ID', ({ id }) => id],
  ['IDLE', ({ timeouts }) => formatTimeout(timeouts.idleMs)],
  ['ON IDLE', ({ timeouts }) => timeouts.onIdle],
  ['EXECUTION', ({ timeouts }) => formatTimeout(timeouts.executionMs)],
  ['PAUSED', ({ timeouts }) => formatTimeout(timeouts.pausedMs)],
]

export function timeout(): Command {
  const made = sandboxesCommand(
    'timeout',
    'Show or change the timeouts of sandboxes.',
    'islet timeout dev --idle 30m --on-idle kill',
  )
  return addTimeoutOptions(made).action(async (texts: string[], flags: TimeoutFlags & JsonFlag) => {
    const change = toTimeouts(flags)
    await forEachSandbox(texts, (sandbox) => (change ? sandbox.setTimeout(change) : sandbox.getInfo()), {
      json: flags.json,
      show: (done) => printTable(done, COLUMNS),
    })
  })
}
