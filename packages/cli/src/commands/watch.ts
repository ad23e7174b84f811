import { type FileChange, hasCode } from '@islet/sdk'
import type { Command } from 'commander'
import { many } from '../args/parse.ts'
import { findSandbox } from '../args/sandbox.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { onBrokenPipe, print, say } from '../output.ts'
import { Signals } from '../stdio/signals.ts'

interface WatchFlags extends JsonFlag {
  ignore?: string[]
  content?: true
}

export function watch(): Command {
  return command(
    'watch',
    'Print what happens to files in a sandbox until Ctrl-C, a line for each event.',
    "islet watch dev src --ignore node_modules --ignore '*.log'",
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('[path]', 'a file, or a directory and all below it; default: the working directory', '.')
    .option('-i, --ignore <glob>', 'leave out names like *.log, or paths like src/**/*.tmp (repeat)', many)
    .option('--content', 'also what is in files that were added or changed')
    .action(action)
}

async function action(text: string, path: string, flags: WatchFlags): Promise<void> {
  using signals = new Signals()
  const sandbox = await findSandbox(connect(), text)
  const watcher = await sandbox.watcher.create(path, {
    ignored: flags.ignore ?? [],
    includeContent: flags.content ?? false,
    signal: signals.aborted,
  })
  const ended = Promise.withResolvers<void>()
  signals.passTo({ kill: async () => ended.resolve() })
  onBrokenPipe(ended.resolve)
  watcher.on('destroyed', () => ended.resolve())
  watcher.on('error', ended.reject)
  watcher.on('overflow', () => {
    if (flags.json) print('{"event":"overflow"}')
    else say('islet: events were lost; look again.')
  })
  say(`Watching ${watcher.getPath()} in ${sandbox.id}; Ctrl-C ends it.`)
  watcher.on('change', (change) => print(flags.json ? JSON.stringify(change) : lineOf(change)))
  try {
    await ended.promise
  } finally {
    signals.hold()
    await sandbox.watcher.destroy(watcher.getId()).catch((error) => {
      if (!hasCode(error, 'watcher_not_found', 'sandbox_not_found')) throw error
    })
  }
}

/** Names of files may hold anything; a line must stay one, and must not speak to the terminal. */
function lineOf({ event, path, content, contentOmitted }: FileChange): string {
  const what =
    content !== undefined ? ` ${JSON.stringify(content)}` : contentOmitted && ` (${contentOmitted})`
  return `${event} ${path}${what ?? ''}`.replace(/\p{Cc}/gu, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
}
