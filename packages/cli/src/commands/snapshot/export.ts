import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { findSnapshot } from '../../args/snapshot.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { Progress } from '../../copy/progress.ts'
import { UsageError } from '../../errors.ts'
import { print, printJson, writeAll } from '../../output.ts'

export function exportSnapshot(): Command {
  return command(
    'export',
    'Write a snapshot into one file for another machine.',
    'islet snapshot export with-deps with-deps.tar.zst',
  )
    .argument('<snapshot>', 'id, beginning of an id, tag, or name')
    .argument('<path>', 'where to, or - for stdout')
    .action(async (text: string, path: string, flags: JsonFlag) => {
      if (path === '-' && process.stdout.isTTY)
        throw new UsageError('It is no text for a terminal.', `islet snapshot export ${text} FILE`)
      const islet = connect()
      const { id, tag, name } = await findSnapshot(islet, text)
      using progress = new Progress(tag ?? name ?? id)
      const content = progress.count(await islet.snapshots.export(id))
      if (path === '-') {
        for await (const part of content) await writeAll(process.stdout, part)
        return
      }
      await writeWhole(content, path)
      if (flags.json) printJson({ id, path })
      else print(path)
    })
}

/** Whole or not at all. */
async function writeWhole(content: AsyncIterable<Uint8Array>, path: string): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`)
  try {
    // It may hold whatever was in the sandbox.
    await pipeline(
      Readable.from(content, { objectMode: false }),
      createWriteStream(temporary, { mode: 0o600, flush: true }),
    )
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
