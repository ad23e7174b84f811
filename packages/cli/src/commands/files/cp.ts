import type { Islet, Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { findSandbox } from '../../args/find.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { copyBetween } from '../../copy/between.ts'
import { copyOut, copyOutToStdout } from '../../copy/download.ts'
import { type Location, parseLocation } from '../../copy/location.ts'
import { copyIn, copyStdinIn } from '../../copy/upload.ts'
import { UsageError } from '../../errors.ts'
import { printResult } from '../../output.ts'

export function cp(): Command {
  return command(
    'cp',
    'Copy files and directories into, out of and between sandboxes.',
    'islet cp ./src dev:/workspace\nislet cp dev:/etc/os-release -',
  )
    .argument('<source>', 'SANDBOX:PATH, a local path, or - for stdin')
    .argument('<target>', 'SANDBOX:PATH, a local path, or - for stdout')
    .action(async (sourceText: string, targetText: string, flags: JsonFlag) => {
      const source = parseLocation(sourceText)
      const target = parseLocation(targetText)
      if (source.kind !== 'remote' && target.kind !== 'remote') {
        throw new UsageError('Neither path is in a sandbox.', 'islet cp ./file dev:/tmp')
      }
      const written = await copy(connect(), source, target)
      if (written === undefined) return
      printResult({ target: written }, written, flags)
    })
}

/** Answers with the path of the copy; undefined if it went to stdout. */
async function copy(islet: Islet, source: Location, target: Location): Promise<string | undefined> {
  const from = await sandboxOf(islet, source)
  const to = await sandboxOf(islet, target)
  if (target.kind === 'stdio') return copyOutToStdout(from!, pathOf(source)).then(() => undefined)
  if (target.kind === 'local') return copyOut(from!, pathOf(source), target.path)
  const prefix = `${target.sandbox}:`
  if (source.kind === 'stdio') return prefix + (await copyStdinIn(to!, target.path))
  if (source.kind === 'local') return prefix + (await copyIn(to!, source.path, target.path))
  return prefix + (await copyBetween(from!, source.path, to!, target.path))
}

async function sandboxOf(islet: Islet, location: Location): Promise<Sandbox | undefined> {
  return location.kind === 'remote' ? findSandbox(islet, location.sandbox) : undefined
}

function pathOf(location: Location): string {
  return location.kind === 'stdio' ? '' : location.path
}
