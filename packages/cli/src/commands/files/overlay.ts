import type { OverlayInfo, Sandbox } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { withSandbox } from '../../args/find.ts'
import { many } from '../../args/parse.ts'
import { group, type JsonFlag, sandboxCommand } from '../../command.ts'
import { CliError } from '../../errors.ts'
import { formatAge } from '../../format.ts'
import { print, printJson, say } from '../../output.ts'
import { type Column, printList } from '../../table.ts'

interface CreateFlags extends JsonFlag {
  ignore?: string[]
  strategy?: 'smart' | 'copy'
  detach?: true
}

/** Waits as long as copying takes; Ctrl-C ends it. */
const PATIENT = { maxRetries: Number.POSITIVE_INFINITY, initialDelayMs: 50, maxDelayMs: 1000 }

const columns: Column<OverlayInfo>[] = [
  ['ID', ({ id }) => id],
  ['STATUS', ({ copyStatus }) => copyStatus],
  ['STRATEGY', ({ strategy }) => strategy],
  ['FILES', ({ stats }) => String(stats.copiedFiles)],
  ['LINKS', ({ stats }) => String(stats.linkedDirs)],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
  ['SOURCE', ({ source }) => source],
  ['TARGET', ({ target }) => target],
]

export function overlay(): Command {
  return group(
    'overlay',
    'Copy template directories inside a sandbox.',
    'islet overlay create dev /opt/templates/node project',
    [ls(), create(), rm()],
  )
}

function ls(): Command {
  return sandboxCommand('ls', 'List the overlays of a sandbox.', 'islet overlay ls dev')
    .alias('list')
    .action(
      withSandbox(async (sandbox: Sandbox, flags: JsonFlag) => {
        const none = `${sandbox.id} has no overlays. islet overlay create --help shows how to create one.`
        printList(await sandbox.files.overlay.list(), flags, { columns, none })
      }),
    )
}

function create(): Command {
  const strategy = 'smart links directories like node_modules; default: smart'
  return sandboxCommand(
    'create',
    'Copy a template directory to another place in the sandbox and print the id.',
    "islet overlay create dev /opt/templates/node project --ignore '*.log'",
  )
    .argument('<template>', 'absolute path of a directory in the sandbox')
    .argument('<place>', 'where to copy it, relative to the working directory')
    .option('--ignore <glob>', 'leave out matching files (repeat)', many)
    .addOption(new Option('--strategy <strategy>', strategy).choices(['smart', 'copy']))
    .option('-d, --detach', 'do not wait until it is copied')
    .action(
      withSandbox(async (sandbox: Sandbox, source: string, target: string, flags: CreateFlags) => {
        const { ignore, strategy } = flags
        const waitForCompletion = flags.detach ? false : PATIENT
        const options = { source, target, ignore, strategy, waitForCompletion }
        const overlay = await sandbox.files.overlay.create(options)
        if (flags.json) printJson(overlay)
        else report(overlay)
        if (overlay.copyStatus === 'failed') {
          throw new CliError('overlay_failed', overlay.copyError ?? 'Copying failed.', {
            hint: `islet overlay rm ${sandbox.id} ${overlay.id} removes what was copied.`,
          })
        }
      }),
    )
}

function rm(): Command {
  return sandboxCommand(
    'rm',
    'Stop overlays and remove the files they copied.',
    'islet overlay rm dev ovl-0123456789abcdefghij',
  )
    .argument('<overlays...>', 'ids')
    .action(
      withSandbox(async (sandbox: Sandbox, ids: string[], flags: JsonFlag) => {
        for (const id of ids) {
          await sandbox.files.overlay.destroy(id)
          if (!flags.json) print(id)
        }
        if (flags.json) printJson(ids)
      }),
    )
}

function report({ id, stats, copyStatus }: OverlayInfo): void {
  print(id)
  if (copyStatus !== 'complete') return
  const { copiedFiles, copiedDirs, linkedDirs, skipped } = stats
  say(
    `${copiedFiles} files and ${copiedDirs} directories copied, ${linkedDirs} linked, ${skipped.length} left out.`,
  )
}
