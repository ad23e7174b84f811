import type { Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { UsageError } from '../errors.ts'
import { printJson } from '../output.ts'

type Emit = (sandbox: Sandbox) => Promise<void>

export function signal(): Command {
  return command(
    'signal',
    'Tell everybody who listens to a sandbox. Programs inside have islet-signal, with the same words.',
    [
      'islet signal dev port 3000 open http://localhost:3000',
      'islet signal dev server-ready 3000 http://localhost:3000',
      'islet signal dev error "the database is away"',
      `islet signal dev build.done '{"files": 3}'`,
    ].join('\n'),
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<name>', 'port, server-ready, error, or one of your own')
    .argument('[words...]', 'what belongs to it; JSON with one of your own')
    .action(async (text: string, name: string, words: string[], flags: JsonFlag) => {
      const emit = toEmit(name, words)
      const sandbox = await findSandbox(connect(), text)
      await emit(sandbox)
      if (flags.json) printJson({ sandboxId: sandbox.id, signal: name })
    })
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
      const data = words[0] === undefined ? undefined : toJson(words[0])
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

function toJson(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`${text.slice(0, 80)} is not JSON.`, `Text is JSON in quotes: '"like this"'.`)
  }
}

function usage(words: string): UsageError {
  return new UsageError('These words make no signal.', `islet signal SANDBOX ${words}`)
}
