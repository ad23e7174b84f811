import type { Sandbox, StoreOperation } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox, withSandbox } from '../../args/find.ts'
import { duration, integer, parseJson } from '../../args/parse.ts'
import { group, type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { print, printJson, printResult, say } from '../../output.ts'
import { readText } from '../../stdio/input.ts'

interface LsFlags extends JsonFlag {
  limit: number
  cursor?: string
}

interface SetFlags extends JsonFlag {
  string?: true
  ttl?: number
}

const SET_EXAMPLE = 'islet store set dev progress \'{"step": 3}\' --ttl 1h'
const BATCH_EXAMPLE =
  'echo \'[{"op": "set", "key": "a", "value": 1}, {"op": "delete", "key": "b"}]\' | islet store batch dev'

export function store(): Command {
  return group('store', 'Use the key-value store of a sandbox.', SET_EXAMPLE, [
    get(),
    set(),
    rm(),
    ls(),
    batch(),
  ])
}

function get(): Command {
  return sandboxCommand(
    'get',
    'Print a value as JSON; --json also prints when it expires.',
    'islet store get dev progress\nislet store get dev status --string',
  )
    .argument('<key>')
    .option('--string', 'print text without quotes')
    .action(
      withSandbox(async ({ store }: Sandbox, key: string, flags: JsonFlag & { string?: true }) => {
        const entry = await store.get(key)
        if (flags.json) return printJson(entry)
        if (flags.string && typeof entry.value === 'string') print(entry.value)
        else printJson(entry.value)
      }),
    )
}

function set(): Command {
  const example = `${SET_EXAMPLE}\nislet store set dev status --string busy`
  return sandboxCommand('set', 'Set a value; it replaces an older one.', example)
    .argument('<key>')
    .argument('[value]', 'JSON; - or nothing reads it from stdin')
    .option('--string', 'the value is text, not JSON')
    .option('--ttl <duration>', 'delete it after this time, like 30s; default: never', duration)
    .action(async (text: string, key: string, typed: string | undefined, flags: SetFlags) => {
      const isTyped = typed !== undefined && typed !== '-'
      const input = isTyped ? typed : await readText(typed, new UsageError('There is no value.', SET_EXAMPLE))
      const value = flags.string
        ? input
        : parseJson(input, 'Quote it for the shell; --string stores it as text.')
      const ttl_seconds = flags.ttl === undefined ? undefined : flags.ttl / 1000
      const answer = await (await findSandbox(connect(), text)).store.set(key, { value, ttl_seconds })
      if (flags.json) printJson(answer)
    })
}

function rm(): Command {
  return sandboxCommand(
    'rm',
    'Delete keys and print the ones that existed.',
    'islet store rm dev progress status',
  )
    .argument('<key...>')
    .action(
      withSandbox(async ({ store }: Sandbox, keys: string[], flags: JsonFlag) => {
        const removed: string[] = []
        for (const key of keys) if ((await store.delete(key)).deleted) removed.push(key)
        printResult(removed, removed.map(showKey), flags)
        if (removed.length === 0 && !flags.json) say('None of these keys exists.')
      }),
    )
}

function ls(): Command {
  return sandboxCommand('ls', 'List the keys, sorted.', 'islet store ls dev run_')
    .alias('list')
    .argument('[prefix]', 'only keys with this prefix')
    .option('--limit <count>', 'list at most this many, up to 1000', integer, 1000)
    .option('--cursor <cursor>', 'list the keys after those of an earlier list')
    .action(
      withSandbox(async ({ store }: Sandbox, prefix: string | undefined, flags: LsFlags) => {
        const { limit, cursor } = flags
        const found = await store.list({ prefix, limit, cursor })
        printResult(found, found.keys.map(showKey), flags)
        if (found.cursor && !flags.json) say(`There are more keys; --cursor ${found.cursor} lists them.`)
      }),
    )
}

function batch(): Command {
  return sandboxCommand(
    'batch',
    'Apply all operations of a list, or none, and print their number.',
    BATCH_EXAMPLE,
  )
    .argument('[file]', 'local file with a JSON list of operations; - or nothing reads stdin')
    .action(async (text: string, path: string | undefined, flags: JsonFlag) => {
      const input = await readText(path, new UsageError('There are no operations.', BATCH_EXAMPLE))
      const operations = parseJson(input, BATCH_EXAMPLE)
      if (!Array.isArray(operations)) throw new UsageError('That is not a list of operations.', BATCH_EXAMPLE)
      const { store } = await findSandbox(connect(), text)
      const answer = await store.batch(operations as StoreOperation[])
      printResult(answer, String(answer.applied), flags)
    })
}

/** One line per key: a key with control characters is shown as JSON. */
function showKey(key: string): string {
  return /\p{Cc}/u.test(key) ? JSON.stringify(key) : key
}
