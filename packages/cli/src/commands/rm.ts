import type { Islet } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandboxId } from '../args/sandbox.ts'
import { agreesTo } from '../ask.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { UsageError } from '../errors.ts'
import { print, printJson } from '../output.ts'

interface RmFlags extends JsonFlag {
  all?: true
  force?: true
}

export function rm(): Command {
  return command('rm', 'Remove sandboxes and all they hold.', 'islet rm dev sbx-4k2\nislet rm --all --force')
    .argument('[sandbox...]', 'ids, beginnings of ids, or names')
    .option('-a, --all', 'every sandbox there is')
    .option('-f, --force', 'do not ask')
    .action(async (texts: string[], flags: RmFlags) => {
      const islet = connect()
      if (texts.length === 0 && !flags.all)
        throw new UsageError('No sandbox is named.', 'islet ls shows them; --all takes all.')
      const ids = flags.all
        ? await allIds(islet)
        : await Promise.all(texts.map((text) => findSandboxId(islet, text)))
      if (flags.all && !flags.force && ids.length > 0) {
        const what = `${ids.length} ${ids.length === 1 ? 'sandbox' : 'sandboxes'}`
        if (!(await agreesTo(`Remove ${what}?`, 'islet rm --all --force'))) return
      }
      const removed = await Promise.all([...new Set(ids)].map((id) => islet.sandboxes.delete(id)))
      if (flags.json) return printJson(removed)
      for (const { id } of removed) print(id)
    })
}

async function allIds(islet: Islet): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of islet.sandboxes.all()) ids.push(id)
  return ids
}
