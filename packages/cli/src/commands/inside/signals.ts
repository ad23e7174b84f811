import type { Sandbox, SignalEvent } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../../args/find.ts'
import { parseJson } from '../../args/parse.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { escapeControls } from '../../format.ts'
import { print, printJson, say } from '../../output.ts'
import { Signals } from '../../stdio/signals.ts'

const QUOTED = `Text is JSON in quotes: '"like this"'.`

type Emit = (sandbox: Sandbox) => Promise<void>

export function signals(): Command {
  return sandboxCommand(
    'signals',
    'Print the signals of a sandbox until Ctrl-C, one per line: opened and closed ports, errors, your own.',
    'islet signals dev',
  ).action(listen)
}

export function signal(): Command {
  return sandboxCommand(
    'signal',
    'Send a signal to all listeners of a sandbox. Inside a sandbox, islet-signal takes the same words.',
    [
      'islet signal dev port 3000 open http://localhost:3000',
      'islet signal dev server-ready 3000 http://localhost:3000',
      'islet signal dev error "the database is away"',
      `islet signal dev build.done '{"files": 3}'`,
    ].join('\n'),
  )
    .argument('<name>', 'port, server-ready, error, or a name of your own')
    .argument('[words...]', 'data of the signal; JSON if the name is your own')
    .action(async (text: string, name: string, words: string[], flags: JsonFlag) => {
      const emit = toEmit(name, words)
      const sandbox = await findSandbox(connect(), text)
      await emit(sandbox)
      if (flags.json) printJson({ sandboxId: sandbox.id, signal: name })
    })
}

async function listen(text: string, flags: JsonFlag): Promise<void> {
  using interrupts = new Signals()
  const sandbox = await findSandbox(connect(), text)
  const service = await sandbox.signals.start({ signal: interrupts.aborted })
  const ended = interrupts.untilInterrupted()
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

function lineOf({ signal, ...data }: SignalEvent): string {
  const words = Object.values(data).map((value) =>
    typeof value === 'object' ? JSON.stringify(value) : value,
  )
  return escapeControls([signal, ...words].join(' '))
}

function toEmit(name: string, words: string[]): Emit {
  switch (name) {
    case 'port': {
      const [port, type, url = local(port), ...more] = words
      if ((type !== 'open' && type !== 'close') || more.length > 0) throw usage('port 3000 open|close [URL]')
      const number = toPort(port)
      return ({ signals }) => signals.emitPort(number, type, url)
    }
    case 'server-ready': {
      const [port, url = local(port), ...more] = words
      if (more.length > 0) throw usage('server-ready 3000 [URL]')
      const number = toPort(port)
      return ({ signals }) => signals.emitServerReady(number, url)
    }
    case 'error':
      if (words.length === 0) throw usage('error MESSAGE')
      return ({ signals }) => signals.emitError(words.join(' '))
    default: {
      if (words.length > 1) throw usage(`${name} [JSON]`)
      const data = words[0] === undefined ? undefined : parseJson(words[0], QUOTED)
      return ({ signals }) => signals.emit(name, data)
    }
  }
}

const local = (port: string | undefined): string => `http://127.0.0.1:${port}`

function toPort(text: string | undefined): number {
  const port = /^\d{1,5}$/.test(text ?? '') ? Number(text) : 0
  if (port < 1 || port > 65_535)
    throw new UsageError('A port is a number from 1 to 65535.', 'For example: port 3000 open')
  return port
}

function usage(words: string): UsageError {
  return new UsageError('These words are not a signal.', `islet signal SANDBOX ${words}`)
}
