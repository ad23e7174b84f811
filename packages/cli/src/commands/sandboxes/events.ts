import { EVENT_TYPES } from '@islet/contract/client'
import type { Events, EventType, SandboxEvent } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandboxId } from '../../args/find.ts'
import { duration, integer, invalid } from '../../args/parse.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { escapeControls } from '../../format.ts'
import { print, printJson, say } from '../../output.ts'
import { Signals } from '../../stdio/signals.ts'

interface EventsFlags extends JsonFlag {
  follow?: true
  type?: EventType[]
  since?: string
  limit: number
}

export function events(): Command {
  return sandboxCommand(
    'events',
    'Print the history of a sandbox, oldest first. A removed sandbox needs its whole id.',
    'islet events dev\nislet events dev --follow --type paused --type resumed\nislet events dev --since 10m --json',
  )
    .option('-f, --follow', 'print new events until the sandbox is removed or Ctrl-C')
    .option('-t, --type <type>', 'only this type: created, paused, process.exited … (repeat)', eventTypes)
    .option(
      '--since <place>',
      'only after this event id, since this time, or within this duration, like 10m',
      place,
    )
    .option('-n, --limit <count>', 'print at most this many past events, up to 1000', integer, 100)
    .action(action)
}

async function action(text: string, flags: EventsFlags): Promise<void> {
  const islet = connect()
  const history = islet.events(await findSandboxId(islet, text))
  const { type: types, since, limit } = flags
  const { events, more } = await history.list({ limit, since, types })
  events.reverse()
  if (flags.json && !flags.follow) return printJson(events)
  for (const event of events) print(lineOf(event, flags))
  if (more) say(`There are older events; --limit prints more than ${limit}.`)
  if (flags.follow) await follow(history, { ...flags, since: events.at(-1)?.id ?? since })
  else if (events.length === 0) say('There are no such events.')
}

async function follow(history: Events, flags: EventsFlags): Promise<void> {
  using signals = new Signals()
  const left = new AbortController()
  signals.untilInterrupted().promise.then(() => left.abort())
  const { since, type: types } = flags
  try {
    for await (const event of history.follow({ since, types, signal: left.signal }))
      print(lineOf(event, flags))
  } catch (error) {
    if (!left.signal.aborted) throw error
  }
}

function eventTypes(text: string, previous: EventType[] = []): EventType[] {
  const type = EVENT_TYPES.find((name) => name === text)
  return type ? [...previous, type] : invalid(`It must be one of ${EVENT_TYPES.join(', ')}.`)
}

function place(text: string): string {
  if (/^\d{1,15}$/.test(text)) return text
  if (/^\d{4}-/.test(text) && !Number.isNaN(Date.parse(text))) return new Date(text).toISOString()
  return new Date(Date.now() - duration(text)).toISOString()
}

function lineOf(event: SandboxEvent, { json }: JsonFlag): string {
  if (json) return JSON.stringify(event)
  const { id, type, data, createdAt } = event
  const words = Object.entries(data).map(
    ([name, value]) =>
      `${name}=${typeof value === 'string' && /^[^\s"=[{]+$/.test(value) ? value : JSON.stringify(value)}`,
  )
  return escapeControls([createdAt, id, type, ...words].join('  '))
}
