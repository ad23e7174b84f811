import { type FileChange, hasCode } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../../args/find.ts'
import { many } from '../../args/parse.ts'
import { type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { escapeControls } from '../../format.ts'
import { print, say } from '../../output.ts'
import { Signals } from '../../stdio/signals.ts'

interface WatchFlags extends JsonFlag {
  ignore?: string[]
  content?: true
}

export function watch(): Command {
  return sandboxCommand(
    'watch',
    'Print file changes in a sandbox until Ctrl-C, one event per line.',
    "islet watch dev src --ignore node_modules --ignore '*.log'",
  )
    .argument('[path]', 'a file, or a directory with all below it; default: the working directory', '.')
    .option('-i, --ignore <glob>', 'leave out names like *.log, or paths like src/**/*.tmp (repeat)', many)
    .option('--content', 'include the content of added and changed files')
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
  const ended = signals.untilInterrupted()
  watcher.on('destroyed', () => ended.resolve())
  watcher.on('error', ended.reject)
  watcher.on('overflow', () => {
    if (flags.json) print('{"event":"overflow"}')
    else say('islet: events were lost; read the files again.')
  })
  say(`Watching ${watcher.getPath()} in ${sandbox.id}; Ctrl-C ends it.`)
  watcher.on('change', (change) => print(flags.json ? JSON.stringify(change) : lineOf(change)))
  try {
    await ended.promise
  } finally {
    signals.startCleanup()
    await sandbox.watcher.destroy(watcher.getId()).catch((error) => {
      if (!hasCode(error, 'watcher_not_found', 'sandbox_not_found')) throw error
    })
  }
}

function lineOf({ event, path, content, contentOmitted }: FileChange): string {
  const what =
    content !== undefined ? ` ${JSON.stringify(content)}` : contentOmitted && ` (${contentOmitted})`
  return escapeControls(`${event} ${path}${what ?? ''}`)
}
