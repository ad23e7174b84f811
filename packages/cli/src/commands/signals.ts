import type { SignalEvent } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { onBrokenPipe, print, say } from '../output.ts'
import { Signals } from '../stdio/signals.ts'

export function signals(): Command {
  return command(
    'signals',
    'Print the signals of a sandbox until Ctrl-C, a line for each: ports that open and close, errors, your own.',
    'islet signals dev',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .action(action)
}

async function action(text: string, flags: JsonFlag): Promise<void> {
  using interrupts = new Signals()
  const sandbox = await findSandbox(connect(), text)
  const service = await sandbox.signals.start({ signal: interrupts.aborted })
  const ended = Promise.withResolvers<void>()
  interrupts.passTo({ kill: async () => ended.resolve() })
  onBrokenPipe(ended.resolve)
  service.on('stopped', (error) => (error === undefined ? ended.resolve() : ended.reject(error)))
  service.on('overflow', () => {
    if (flags.json) print('{"signal":"overflow"}')
    else say('islet: signals were lost.')
  })
  service.on('signal', (event) => print(flags.json ? JSON.stringify(event) : lineOf(event)))
  say(`Listening to ${sandbox.id}; Ctrl-C ends it.`)
  await ended.promise
  service.close()
}

/** What is said inside may hold anything; a line must stay one, and must not speak to the terminal. */
function lineOf(event: SignalEvent): string {
  const { signal, ...rest } = event
  const words = Object.values(rest).map((value) =>
    typeof value === 'object' ? JSON.stringify(value) : value,
  )
  return [signal, ...words].join(' ').replace(/\p{Cc}/gu, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
}
