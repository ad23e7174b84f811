import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { SnapshotInfo } from '@islet/sdk'
import type { Command } from 'commander'
import { removeEach } from '../../args/each.ts'
import { allSnapshots, collect, findSandboxId, findSnapshot } from '../../args/find.ts'
import { command, group, type JsonFlag, SANDBOX } from '../../command.ts'
import { connect } from '../../connect.ts'
import { writeWhole } from '../../copy/write-whole.ts'
import { CliError, UsageError } from '../../errors.ts'
import { formatAge, formatSize } from '../../format.ts'
import { printJson, printResult, writeAll } from '../../output.ts'
import { withProgress } from '../../progress.ts'
import { type Column, type ListFlags, printFields, printList } from '../../table.ts'
import { tree } from './snapshot-tree.ts'

interface CreateFlags extends JsonFlag {
  checkpoint?: string
  name?: string
  tag?: string
  description?: string
}

interface ImportFlags extends JsonFlag {
  name?: string
  tag?: string
  otherHost?: true
}

const SNAPSHOT = 'id, id prefix, tag, or name'
const TAG = 'tag to find it by; it moves here from another snapshot'

const columns: Column<SnapshotInfo>[] = [
  ['ID', ({ id }) => id],
  ['TAG', ({ tag }) => tag ?? '-'],
  ['NAME', ({ name }) => name ?? '-'],
  ['RUNTIME', ({ runtime }) => runtime],
  ['SIZE', ({ sizeBytes }) => formatSize(sizeBytes)],
  ['AGE', ({ createdAt }) => formatAge(createdAt)],
]

export function snapshot(): Command {
  return group(
    'snapshot',
    'Publish saved sandboxes as a base for new ones.',
    'islet snapshot create dev --tag with-deps\nislet create --snapshot with-deps',
    [create(), ls(), info(), tag(), untag(), rm(), tree(), exportSnapshot(), importSnapshot()],
  )
}

function create(): Command {
  return command(
    'create',
    'Create a snapshot of a sandbox or of a checkpoint and print its id.',
    'islet snapshot create dev --tag with-deps\nislet snapshot create --checkpoint ckp-4f… --name nightly',
  )
    .argument('[sandbox]', SANDBOX)
    .option('--checkpoint <id>', 'use this checkpoint in place of a sandbox')
    .option('--name <name>', 'name of the snapshot')
    .option('--tag <tag>', TAG)
    .option('--description <text>', 'what it contains')
    .action(async (text: string | undefined, flags: CreateFlags) => {
      const { checkpoint, name, tag, description } = flags
      if ((text === undefined) === (checkpoint === undefined))
        throw new UsageError('Name either a sandbox or a checkpoint.', 'islet snapshot create dev --tag v1')
      const islet = connect()
      const of = checkpoint === undefined ? { sandbox: await findSandboxId(islet, text!) } : { checkpoint }
      const made = await islet.snapshots.create(of, { name, tag, description })
      printResult(made, made.id, flags)
    })
}

function ls(): Command {
  return command('ls', 'List the snapshots, newest first.', 'islet snapshot ls')
    .alias('list')
    .option('-q, --quiet', 'print only ids')
    .action(async (flags: ListFlags) => {
      const found = await collect(allSnapshots(connect()))
      const none = 'There are no snapshots. islet snapshot create SANDBOX creates one.'
      printList(found, flags, { columns, none, key: ({ id }) => id })
    })
}

function info(): Command {
  return command('info', 'Show a snapshot.', 'islet snapshot info with-deps')
    .argument('<snapshot>', SNAPSHOT)
    .action(async (text: string, flags: JsonFlag) => {
      const found = await findSnapshot(connect(), text)
      if (flags.json) return printJson(found)
      printFields([
        ['id', found.id],
        ['tag', found.tag],
        ['name', found.name],
        ['description', found.description],
        ['runtime', found.runtime],
        ['made of', found.checkpointId ?? found.sandboxId ?? 'a file'],
        ['parent', found.parentId],
        ['size', found.sizeBytes === null ? null : formatSize(found.sizeBytes)],
        ['memory', found.memory ? 'yes' : 'no'],
        ['age', formatAge(found.createdAt)],
      ])
    })
}

function tag(): Command {
  return command(
    'tag',
    'Give a snapshot a tag; it moves here from another snapshot.',
    'islet snapshot tag snp-4f… stable',
  )
    .argument('<snapshot>', SNAPSHOT)
    .argument('<tag>', 'letters, digits, dots, dashes and underscores')
    .action(setTag)
}

function untag(): Command {
  return command('untag', 'Remove the tag of a snapshot.', 'islet snapshot untag stable')
    .argument('<snapshot>', SNAPSHOT)
    .action((text: string, flags: JsonFlag) => setTag(text, null, flags))
}

async function setTag(text: string, tag: string | null, flags: JsonFlag): Promise<void> {
  const islet = connect()
  const { id } = await findSnapshot(islet, text)
  printResult(await islet.snapshots.tag(id, tag), id, flags)
}

function rm(): Command {
  return command(
    'rm',
    'Remove snapshots; files that other snapshots need are kept.',
    'islet snapshot rm with-deps',
  )
    .argument('<snapshot...>', 'ids, id prefixes, tags, or names')
    .action(async (texts: string[], flags: JsonFlag) => {
      const islet = connect()
      const find = async (text: string) => (await findSnapshot(islet, text)).id
      await removeEach(texts, flags, (id) => islet.snapshots.delete(id), find)
    })
}

function exportSnapshot(): Command {
  return command(
    'export',
    'Write a snapshot to a file, for another server.',
    'islet snapshot export with-deps with-deps.tar.zst',
  )
    .argument('<snapshot>', SNAPSHOT)
    .argument('<path>', 'local file; - writes to stdout')
    .action(async (text: string, path: string, flags: JsonFlag) => {
      if (path === '-' && process.stdout.isTTY)
        throw new UsageError('A snapshot is not text for a terminal.', `islet snapshot export ${text} FILE`)
      const islet = connect()
      const { id, tag, name } = await findSnapshot(islet, text)
      const content = withProgress(await islet.snapshots.export(id), tag ?? name ?? id)
      if (path === '-') {
        for await (const part of content) await writeAll(process.stdout, part)
        return
      }
      // The file may hold secrets of the sandbox.
      await writeWhole(path, content, { mode: 0o600, flush: true })
      printResult({ id, path }, path, flags)
    })
}

function importSnapshot(): Command {
  return command(
    'import',
    'Create a snapshot from an exported file and print its id.',
    'islet snapshot import with-deps.tar.zst --tag with-deps',
  )
    .argument('<path>', 'local file; - reads stdin')
    .option('--name <name>', 'use this name in place of the one in the file')
    .option('--tag <tag>', TAG)
    .option('--other-host', 'allow a snapshot of the runtime host from a machine with another system')
    .action(async (path: string, { json, ...options }: ImportFlags) => {
      const sizeBytes = path === '-' ? undefined : await sizeOf(path)
      const source = path === '-' ? process.stdin : createReadStream(path)
      const made = await connect().snapshots.import(withProgress(source, path, sizeBytes), options)
      printResult(made, made.id, { json })
    })
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined)
  if (found && !found.isDirectory()) return found.size
  throw new CliError('file_not_found', `There is no file ${path}.`, { hint: 'ls -la lists the files.' })
}
