import { EVENT_TYPES } from '@islet/contract/client'
import type { Events, EventType, SandboxEvent } from '@islet/sdk'
import { type Command, InvalidArgumentError } from 'commander'
import { duration, integer } from '../args/parse.ts'
import { findSandboxId } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { onBrokenPipe, print, printJson, say } from '../output.ts'

interface EventsFlags extends JsonFlag {
  follow?: true
  type?: EventType[]
  since?: string
  limit: number
}

export function events(): Command {
  return command(
    'events',
    'Print what happened to a sandbox, oldest first; of one that is gone by its whole id.',
    'islet events dev\nislet events dev --follow --type paused --type resumed\nislet events dev --since 10m --json',
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .option('-f, --follow', 'go on with what happens, until the sandbox is gone or Ctrl-C')
    .option('-t, --type <type>', 'only these: created, paused, process.exited … (repeat)', eventTypes)
    .option('--since <place>', 'after the event of this id, from this time on, or so long ago: 10m', place)
    .option('-n, --limit <count>', 'at most so many of the past, up to 1000', integer, 100)
    .action(action)
}

async function action(text: string, flags: EventsFlags): Promise<void> {
  const islet = connect()
  const id = await findSandboxId(islet, text)
  const history = islet.events(id)
  const { type: types, since, limit } = flags
  const { events, more } = await history.list({ limit, since, types })
  events.reverse()
  if (flags.json && !flags.follow) return printJson(events)
  for (const event of events) print(flags.json ? JSON.stringify(event) : lineOf(event))
  if (more) say(`There are older ones; --limit shows more than ${limit}.`)
  if (flags.follow) await follow(history, { ...flags, since: events.at(-1)?.id ?? since })
  else if (events.length === 0) say('No such events.')
}

async function follow(history: Events, { json, type, since }: EventsFlags): Promise<void> {
  const left = new AbortController()
  const leave = () => left.abort()
  process.once('SIGINT', leave).once('SIGTERM', leave)
  onBrokenPipe(leave)
  try {
    for await (const event of history.follow({ since, types: type, signal: left.signal }))
      print(json ? JSON.stringify(event) : lineOf(event))
  } catch (error) {
    if (!left.signal.aborted) throw error
  } finally {
    process.off('SIGINT', leave).off('SIGTERM', leave)
  }
}

function eventTypes(text: string, before: EventType[] = []): EventType[] {
  const type = EVENT_TYPES.find((name) => name === text)
  if (type) return [...before, type]
  throw new InvalidArgumentError(`It must be one of ${EVENT_TYPES.join(', ')}.`)
}

function place(text: string): string {
  if (/^\d{1,15}$/.test(text)) return text
  if (/^\d{4}-/.test(text) && !Number.isNaN(Date.parse(text))) return new Date(text).toISOString()
  return new Date(Date.now() - duration(text)).toISOString()
}

/** What is told of the inside may hold anything; a line must stay one, and must not speak to the terminal. */
function lineOf({ id, type, data, createdAt }: SandboxEvent): string {
  const words = Object.entries(data).map(
    ([name, value]) =>
      `${name}=${typeof value === 'string' && /^[^\s"=[{]+$/.test(value) ? value : JSON.stringify(value)}`,
  )
  return [createdAt, id, type, ...words].join('  ').replace(/\p{Cc}/gu, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
}
