import type { Command } from 'commander'
import { collect, findSandboxId } from '../../args/find.ts'
import { command, type JsonFlag } from '../../command.ts'
import { confirm } from '../../confirm.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { printResult, say } from '../../output.ts'

interface RmFlags extends JsonFlag {
  all?: true
  force?: true
}

export function rm(): Command {
  return command('rm', 'Remove sandboxes and their files.', 'islet rm dev sbx-4k2\nislet rm --all --force')
    .argument('[sandbox...]', 'ids, id prefixes, or names')
    .option('-a, --all', 'remove every sandbox')
    .option('-f, --force', 'do not ask')
    .action(action)
}

async function action(texts: string[], flags: RmFlags): Promise<void> {
  const islet = connect()
  if (texts.length === 0 && !flags.all)
    throw new UsageError('No sandbox is named.', 'islet ls lists them; islet rm --all removes all.')
  const ids = flags.all
    ? (await collect(islet.sandboxes.all())).map(({ id }) => id)
    : await Promise.all(texts.map((text) => findSandboxId(islet, text)))
  if (flags.all && !flags.force && ids.length > 0) {
    const what = ids.length === 1 ? '1 sandbox' : `${ids.length} sandboxes`
    if (!(await confirm(`Remove ${what}? [y/N]`, 'islet rm --all --force')))
      return say('Nothing was removed.')
  }
  const removed = await Promise.all([...new Set(ids)].map((id) => islet.sandboxes.delete(id)))
  printResult(
    removed,
    removed.map(({ id }) => id),
    flags,
  )
}
