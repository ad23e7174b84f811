import type { OverlayInfo } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { many } from '../../args/parse.ts'
import { findSandbox } from '../../args/sandbox.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { CliError } from '../../errors.ts'
import { print, printJson, say } from '../../output.ts'

interface CreateFlags extends JsonFlag {
  ignore?: string[]
  strategy?: 'smart' | 'copy'
  detach?: true
}

/** A command waits as long as the copying takes; Ctrl-C ends the waiting. */
const PATIENT = { maxRetries: Number.POSITIVE_INFINITY, initialDelayMs: 50, maxDelayMs: 1000 }

export function create(): Command {
  return command(
    'create',
    'Copy a template directory of the sandbox to another place in it; prints the id.',
    "islet overlay create dev /opt/templates/node project --ignore '*.log'",
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('<template>', 'a directory of the sandbox; absolute')
    .argument('<place>', 'where it goes; relative to the working directory')
    .option('--ignore <glob>', 'leave out what matches (repeat)', many)
    .addOption(
      new Option(
        '--strategy <strategy>',
        'smart links directories like node_modules; default: smart',
      ).choices(['smart', 'copy']),
    )
    .option('-d, --detach', 'do not wait until it is copied')
    .action(async (text: string, source: string, target: string, flags: CreateFlags) => {
      const { ignore, strategy } = flags
      const sandbox = await findSandbox(connect(), text)
      const waitForCompletion = flags.detach ? false : PATIENT
      const overlay = await sandbox.files.overlay.create({
        source,
        target,
        ignore,
        strategy,
        waitForCompletion,
      })
      if (flags.json) printJson(overlay)
      else report(overlay)
      if (overlay.copyStatus === 'failed') {
        throw new CliError('overlay_failed', overlay.copyError ?? 'The copying failed.', {
          hint: `islet overlay rm ${sandbox.id} ${overlay.id} removes what was copied.`,
        })
      }
    })
}

function report({ id, stats, copyStatus }: OverlayInfo): void {
  print(id)
  if (copyStatus !== 'complete') return
  const { copiedFiles, copiedDirs, linkedDirs, skipped } = stats
  say(
    `${copiedFiles} files and ${copiedDirs} directories copied, ${linkedDirs} linked, ${skipped.length} left out.`,
  )
}
