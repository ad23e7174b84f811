import type { Command } from 'commander'
import { findSnapshot } from '../../args/snapshot.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { formatAge, formatBytes } from '../../format.ts'
import { print, printJson } from '../../output.ts'
import { clean } from '../../table.ts'

export function info(): Command {
  return command('info', 'Show what is known about a snapshot.', 'islet snapshot info with-deps')
    .argument('<snapshot>', 'id, beginning of an id, tag, or name')
    .action(async (text: string, flags: JsonFlag) => {
      const found = await findSnapshot(connect(), text)
      if (flags.json) return printJson(found)
      const lines: [string, string | null][] = [
        ['id', found.id],
        ['tag', found.tag],
        ['name', found.name],
        ['description', found.description],
        ['runtime', found.runtime],
        ['made of', found.checkpointId ?? found.sandboxId ?? 'a file'],
        ['parent', found.parentId],
        ['size', found.sizeBytes === null ? null : formatBytes(found.sizeBytes)],
        ['memory', found.memory ? 'yes' : 'no'],
        ['age', formatAge(found.createdAt)],
      ]
      for (const [label, value] of lines) if (value !== null) print(`${label.padEnd(12)} ${clean(value)}`)
    })
}
