import { rm } from 'node:fs/promises'
import type { Command } from 'commander'
import { command, type JsonFlag } from '../../command.ts'
import { CliError } from '../../errors.ts'
import { printJson, say } from '../../output.ts'
import { isBooted, readUnit, systemctl, UNIT, UNIT_PATH } from '../../systemd/systemd.ts'
import { settingsOf } from '../../systemd/unit.ts'

export function uninstall(): Command {
  return command(
    'uninstall',
    'Stop the service of systemd and remove it (as root); sandboxes and data stay.',
    'sudo islet service uninstall',
  ).action(async (flags: JsonFlag) => {
    const unit = await readUnit()
    const { ISLET_DATA_DIR: dataDir = '/var/lib/islet' } = settingsOf(unit)
    const wasInstalled = unit !== ''
    if (wasInstalled) await removeService()
    if (flags.json) return printJson({ wasInstalled, dataDir })
    if (!wasInstalled) return say(`There is no ${UNIT_PATH}.`)
    say(`Removed ${UNIT_PATH}. Sandboxes go on, and ${dataDir} stays.`)
  })
}

export async function removeService(): Promise<void> {
  if (process.geteuid?.() !== 0)
    throw new CliError('EACCES', 'Only root can remove a service.', { hint: 'sudo islet service uninstall' })
  if (isBooted()) await systemctl('disable', '--quiet', '--now', UNIT)
  await rm(UNIT_PATH, { force: true })
  if (isBooted()) await systemctl('daemon-reload')
}
