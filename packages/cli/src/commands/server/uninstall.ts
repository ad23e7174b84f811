import { rm, rmdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { dataDirectory } from '@islet/sdk'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { placesOfTheMachine } from '../../completion/place.ts'
import { confirm } from '../../confirm.ts'
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
    'Stop and remove the systemd service (as root). Sandboxes and data stay unless --purge is given.',
    'sudo islet service uninstall\nsudo islet service uninstall --purge',
  )
    .option(
      '--purge',
      'also remove all sandboxes, the data directory, and what install created on this machine',
    )
    .option(
      '--data-dir <path>',
      'data that --purge removes; default: that of the service, else ISLET_DATA_DIR',
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
    throw new UsageError('--data-dir needs --purge.', 'islet service uninstall --purge --data-dir PATH')
  if (flags.purge) return purge(dataDir, { ofService, groups: madeGroupsOf(unit) }, flags)
  if (unit !== '') await removeService()
  if (flags.json) return printJson({ wasInstalled: unit !== '', dataDir: ofService ?? dataDir })
  if (unit === '') return say(`There is no ${UNIT_PATH}.`)
  say(`Removed ${UNIT_PATH}. Sandboxes keep running, and ${ofService} stays; --purge removes them too.`)
}

interface Installed {
  ofService: string | undefined
  groups: string[]
}

/** The service and its files go only with the service's own data directory, not with that of another server. */
async function purge(
  dataDir: string,
  { ofService, groups }: Installed,
  flags: UninstallFlags,
): Promise<void> {
  const { isDataDir, removeServer } = await import('@islet/server')
  const isMain = dataDir === (ofService ?? DEFAULT_DIRECTORY)
  if (!isMain && !isDataDir(dataDir)) {
    throw new CliError('no_data', `${dataDir} is not the data directory of a server.`, {
      hint: 'Give the right one with --data-dir or ISLET_DATA_DIR.',
    })
  }
  assertRoot(isMain)
  if (!flags.yes) await assertConfirmed(dataDir)
  if (isMain && ofService !== undefined) await removeService()
  const { left } = isDataDir(dataDir) ? await removeServer(dataDir) : { left: [] }
  if (isMain) await removeFromMachine(groups)
  if (flags.json) return printJson({ dataDir, left })
  say(`Removed ${isMain ? 'the service, ' : ''}all sandboxes and what was in ${dataDir}.`)
  if (left.length > 0) say(`${dataDir} stays, because these files do not belong to Islet: ${left.join(', ')}`)
  if (isMain) say('npm uninstall --global islet removes the program.')
}

async function assertConfirmed(dataDir: string): Promise<void> {
  const question = `Remove all sandboxes and everything in ${dataDir}? Type yes:`
  const hint = `--yes removes all sandboxes and everything in ${dataDir} without a question.`
  if (await confirm(question, hint, /^yes$/)) return
  throw new CliError('not_confirmed', 'Nothing was removed.', { hint: 'Run it again and type yes.' })
}

function assertRoot(isNeeded = true): void {
  if (!isNeeded || process.geteuid?.() === 0) return
  throw new CliError('EACCES', 'Only root can remove the service.', {
    hint: 'sudo islet service uninstall',
  })
}

async function removeService(): Promise<void> {
  assertRoot()
  if (isBooted()) await systemctl('disable', '--quiet', '--now', UNIT)
  await rm(UNIT_PATH, { force: true })
  if (isBooted()) await systemctl('daemon-reload')
}

/** Removes what install, or an administrator for this service, put outside the data directory. */
async function removeFromMachine(groups: string[]): Promise<void> {
  await rm(`${UNIT_PATH}.d`, { recursive: true, force: true })
  await rm(ENVIRONMENT_FILE, { force: true })
  await rmdir(dirname(ENVIRONMENT_FILE)).catch(() => {})
  for (const path of placesOfTheMachine()) await rm(path, { force: true })
  for (const group of groups) await removeGroup(group)
}
