import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { PatchInfo, PatchRun, Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { removeEach } from '../../args/each.ts'
import { withSandbox } from '../../args/find.ts'
import { command, group, type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge, formatBytes } from '../../format.ts'
import { printResult } from '../../output.ts'
import { type Column, type ListFlags, printList } from '../../table.ts'

const PATCH_COLUMNS: Column<PatchInfo>[] = [
  ['ID', ({ id }) => id],
  ['SIZE', ({ script }) => formatBytes(Buffer.byteLength(script))],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
  ['DESCRIPTION', ({ description }) => description ?? '-'],
]
const RUN_COLUMNS: Column<PatchRun>[] = [
  ['PATCH', ({ patchId }) => patchId],
  ['STATUS', ({ status, exitCode }) => (exitCode === null ? status : `${status} (${exitCode})`)],
  ['AGE', ({ at }) => (at === null ? '-' : formatAge(at))],
  ['REASON', (run) => reasonOf(run) ?? '-'],
]

export function patch(): Command {
  return group(
    'patch',
    'Manage scripts that run once in every sandbox made from a checkpoint.',
    'islet checkpoint patch add ckp-… ./update.sh --description "new CA"',
    [add(), ls(), rm(), runs()],
  )
}

function add(): Command {
  return command(
    'add',
    'Add a bash script after the other patches of a checkpoint and print its id.',
    'islet checkpoint patch add ckp-… ./update.sh\necho "apt-get install -y jq" | islet checkpoint patch add ckp-… -',
  )
    .argument('<checkpoint>', 'id')
    .argument('<file>', 'local file with the script; - reads stdin')
    .option('-d, --description <text>', 'what it is for')
    .action(async (checkpointId: string, file: string, flags: JsonFlag & { description?: string }) => {
      const script = file === '-' ? await text(process.stdin) : await readFile(file, 'utf8')
      const { description } = flags
      const made = await connect().checkpoints.patches.create(checkpointId, { script, description })
      printResult(made, made.id, flags)
    })
}

function ls(): Command {
  return command(
    'ls',
    'List the patches of a checkpoint in the order they run; --json includes the scripts.',
    'islet checkpoint patch ls ckp-…',
  )
    .alias('list')
    .argument('<checkpoint>', 'id')
    .option('-q, --quiet', 'print only ids')
    .action(async (checkpointId: string, flags: ListFlags) => {
      const found = await connect().checkpoints.patches.list(checkpointId)
      const none = `${checkpointId} has no patches.`
      printList(found, flags, { columns: PATCH_COLUMNS, none, key: ({ id }) => id })
    })
}

function rm(): Command {
  return command(
    'rm',
    'Remove patches from a checkpoint; sandboxes that already ran them keep their effects.',
    'islet checkpoint patch rm ckp-… pat-…',
  )
    .argument('<checkpoint>', 'id')
    .argument('<patch...>', 'ids')
    .action(async (checkpointId: string, ids: string[], flags: JsonFlag) => {
      const { patches } = connect().checkpoints
      await removeEach(ids, flags, (id) => patches.delete(checkpointId, id))
    })
}

function runs(): Command {
  return sandboxCommand(
    'runs',
    'Show the result of each patch in a sandbox, in order; --json includes the output.',
    'islet checkpoint patch runs dev',
  ).action(
    withSandbox(async (sandbox: Sandbox, flags: JsonFlag) => {
      const none = `${sandbox.id} has no patches.`
      printList(await sandbox.listPatches(), flags, { columns: RUN_COLUMNS, none })
    }),
  )
}

/** If a patch failed for no known reason: the last line of its output. */
function reasonOf({ status, reason, output }: PatchRun): string | undefined {
  if (reason !== null || status !== 'failed') return reason ?? undefined
  const line = output.trimEnd().split('\n').at(-1)
  return line?.replace(/\p{Cc}/gu, ' ').slice(0, 100) || undefined
}
