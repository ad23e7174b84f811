import { rm, rmdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { dataDirectory } from '@islet/sdk'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { placesOfTheMachine } from '../../completion/place.ts'
import { CliError, UsageError } from '../../errors.ts'
import { printJson, say } from '../../output.ts'
import { isBooted, readUnit, removeGroup, systemctl, UNIT, UNIT_PATH } from '../../systemd/systemd.ts'
import { ENVIRONMENT_FILE, madeGroupsOf, settingsOf } from '../../systemd/unit.ts'

interface UninstallFlags extends JsonFlag {
  purge?: true
  yes?: true
  dataDir?: string
}

const DEFAULT_DIRECTORY = '/var/lib/islet'

export function uninstall(): Command {
  return command(
    'uninstall',
    'Stop the service of systemd and remove it (as root); sandboxes and data stay, unless --purge removes everything.',
    'sudo islet service uninstall\nsudo islet service uninstall --purge',
  )
    .option(
      '--purge',
      'also remove all sandboxes, the data directory, a group that installing made and all else on this machine',
    )
    .option(
      '--data-dir <path>',
      'whose data --purge removes; default: that of the service, else ISLET_DATA_DIR',
    )
    .option('-y, --yes', 'do not ask')
    .action(action)
}

async function action(flags: UninstallFlags): Promise<void> {
  const unit = await readUnit()
  const settings = settingsOf(unit)
  const ofService = unit === '' ? undefined : (settings.ISLET_DATA_DIR ?? DEFAULT_DIRECTORY)
  const asked = flags.dataDir ?? (process.env.ISLET_DATA_DIR || undefined)
  const dataDir = resolve(asked ?? ofService ?? dataDirectory() ?? DEFAULT_DIRECTORY)
  if (flags.dataDir !== undefined && !flags.purge)
    throw new UsageError('--data-dir is for --purge.', 'islet service uninstall --purge --data-dir PATH')
  if (flags.purge) return purge(dataDir, { ofService, groups: madeGroupsOf(unit) }, flags)
  if (unit !== '') await removeService()
  if (flags.json) return printJson({ wasInstalled: unit !== '', dataDir: ofService ?? dataDir })
  if (unit === '') return say(`There is no ${UNIT_PATH}.`)
  say(`Removed ${UNIT_PATH}. Sandboxes go on, and ${ofService} stays; --purge removes them too.`)
}

interface Installed {
  ofService: string | undefined
  groups: string[]
}

/** What belongs to the machine's one service goes with its data directory, and not with that of another server. */
async function purge(
  dataDir: string,
  { ofService, groups }: Installed,
  flags: UninstallFlags,
): Promise<void> {
  const { isDataDir, removeServer } = await import('@islet/server')
  const isMain = dataDir === (ofService ?? DEFAULT_DIRECTORY)
  if (!isMain && !isDataDir(dataDir)) {
    throw new CliError('no_data', `${dataDir} is not the data directory of a server.`, {
      hint: 'Name it with --data-dir, or with ISLET_DATA_DIR.',
    })
  }
  assertRoot(isMain)
  await confirm(dataDir, flags)
  if (isMain && ofService !== undefined) await removeService()
  const { left } = isDataDir(dataDir) ? await removeServer(dataDir) : { left: [] }
  if (isMain) await removeFromMachine(groups)
  if (flags.json) return printJson({ dataDir, left })
  say(`Removed ${isMain ? 'the service, ' : ''}all sandboxes and what was in ${dataDir}.`)
  if (left.length > 0) say(`${dataDir} stays, because these are not of Islet: ${left.join(', ')}`)
  if (isMain) say('npm uninstall --global islet removes the program.')
}

async function confirm(dataDir: string, { yes }: UninstallFlags): Promise<void> {
  if (yes) return
  if (!process.stdin.isTTY) {
    throw new UsageError(
      `This would remove all sandboxes and everything in ${dataDir}.`,
      'Add --yes if that is meant.',
    )
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await terminal.question(`Remove all sandboxes and everything in ${dataDir}? Type yes: `)
  terminal.close()
  if (answer.trim() !== 'yes')
    throw new CliError('not_confirmed', 'Nothing was removed.', { hint: 'Run it again and type yes.' })
}

function assertRoot(isNeeded = true): void {
  if (!isNeeded || process.geteuid?.() === 0) return
  throw new CliError('EACCES', 'Only root can remove the service of a machine.', {
    hint: 'sudo islet service uninstall',
  })
}

async function removeService(): Promise<void> {
  assertRoot()
  if (isBooted()) await systemctl('disable', '--quiet', '--now', UNIT)
  await rm(UNIT_PATH, { force: true })
  if (isBooted()) await systemctl('daemon-reload')
}

/** What installing, or an administrator for this service, put elsewhere. */
async function removeFromMachine(groups: string[]): Promise<void> {
  await rm(`${UNIT_PATH}.d`, { recursive: true, force: true })
  await rm(ENVIRONMENT_FILE, { force: true })
  await rmdir(dirname(ENVIRONMENT_FILE)).catch(() => {})
  for (const path of placesOfTheMachine()) await rm(path, { force: true })
  for (const group of groups) await removeGroup(group)
}
