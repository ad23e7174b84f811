// Runs the server as a systemd service. A second run keeps the settings, rewrites the unit and restarts the server.
import { realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { dataDirectory } from '@islet/sdk'
import type { Command } from 'commander'
import { integer } from '../../args/parse.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connect } from '../../connect.ts'
import { CliError, UsageError } from '../../errors.ts'
import { print, printJson, say } from '../../output.ts'
import { ensureSetup } from '../../setup.ts'
import {
  ensureGroup,
  isBooted,
  lastLines,
  readUnit,
  systemctl,
  systemdVersion,
  UNIT,
  UNIT_PATH,
  unitState,
  writeUnit,
} from '../../systemd/systemd.ts'
import { madeGroupsOf, renderUnit, settingsOf } from '../../systemd/unit.ts'

interface InstallFlags extends JsonFlag {
  host?: string
  port?: number
  dataDir?: string
  print?: true
  setup: boolean
}

/** The first start may build the native programs and create the pool. */
const START_MS = 120_000
const POLL_MS = 250

export function install(): Command {
  return command(
    'install',
    'Run the Islet server as a systemd service (as root); run this again after an upgrade.',
    'sudo islet service install --port 7400',
  )
    .option('--host <address>', 'address to listen on (ISLET_HOST; default 127.0.0.1)')
    .option('-p, --port <port>', 'port to listen on (ISLET_PORT; default 7400)', integer)
    .option('--data-dir <path>', 'directory for all data (ISLET_DATA_DIR; default /var/lib/islet)')
    .option('--print', 'only print the unit')
    .option('--no-setup', 'do not install missing system packages first')
    .action(action)
}

async function action(flags: InstallFlags): Promise<void> {
  const settings = await chooseSettings(flags)
  const islet = realpathSync(process.argv[1]!)
  const version = await systemdVersion()
  const render = (madeGroups: string[]) =>
    renderUnit({ node: process.execPath, islet, settings, madeGroups, version })
  const madeGroups = madeGroupsOf(await readUnit())
  const unit = render(madeGroups)
  if (flags.print) return flags.json ? printJson({ path: UNIT_PATH, unit }) : print(unit.trimEnd())
  assertAble(islet)
  const url = urlOf(settings)
  await assertFree(url)
  for (const path of [process.execPath, islet]) warnOfOwner(path)
  if (flags.setup) await ensureSetup()
  const group = settings.ISLET_GROUP ?? 'islet'
  const isNewGroup = group !== '' && (await ensureGroup(group))
  await writeUnit(isNewGroup ? render([...new Set([...madeGroups, group])]) : unit)
  await systemctl('daemon-reload')
  await systemctl('enable', '--quiet', UNIT)
  await systemctl('restart', UNIT)
  await untilUp(url)
  if (flags.json) return printJson({ unit: UNIT_PATH, url, dataDir: settings.ISLET_DATA_DIR, group })
  if (isNewGroup) say(`Created the group ${group}.`)
  say(`Wrote ${UNIT_PATH}; the server answers at ${url} and starts with the machine.`)
  if (group !== '') say(`To let another user use it: usermod -aG ${group} NAME, then log in again.`)
  say(`journalctl -u ${UNIT} shows its log.`)
}

/** Flags override the environment, which overrides the installed unit. */
async function chooseSettings(flags: InstallFlags): Promise<Record<string, string>> {
  if (flags.port === 0 || (flags.port ?? 0) > 65_535)
    throw new UsageError(`--port ${flags.port} is not a port for a service.`, 'Choose one from 1 to 65535.')
  const last = settingsOf(await readUnit())
  const asked = {
    ISLET_DATA_DIR: flags.dataDir ?? process.env.ISLET_DATA_DIR,
    ISLET_HOST: flags.host ?? (process.env.ISLET_HOST || undefined),
    ISLET_PORT: flags.port?.toString() ?? (process.env.ISLET_PORT || undefined),
    ISLET_GROUP: process.env.ISLET_GROUP,
  }
  const settings: Record<string, string> = { ISLET_DATA_DIR: '/var/lib/islet', ...last }
  for (const [name, value] of Object.entries(asked)) if (value !== undefined) settings[name] = value
  settings.ISLET_DATA_DIR = resolve(settings.ISLET_DATA_DIR || dataDirectory() || '/var/lib/islet')
  await check(settings)
  return settings
}

/** Validates the settings as the server does, before anything is written. */
async function check(settings: Record<string, string>): Promise<void> {
  const { loadConfig } = await import('@islet/server')
  try {
    loadConfig({ env: settings, isRoot: true })
  } catch (error) {
    throw new UsageError((error as Error).message, 'islet service install --help lists the options.')
  }
}

function assertAble(islet: string): void {
  if (!isBooted()) {
    throw new CliError('no_systemd', 'This machine does not run systemd (there is no /run/systemd/system).', {
      hint: 'islet service install --print shows the unit; let the service manager of this machine run islet serve.',
    })
  }
  if (process.geteuid?.() !== 0) {
    throw new CliError('EACCES', 'Only root can install a service.', { hint: 'sudo islet service install' })
  }
  if (/\/_npx\//.test(islet)) {
    throw new CliError('not_installed', `${islet} is in a cache that npm may empty.`, {
      hint: 'npm install --global islet, then: islet service install',
    })
  }
}

/** Root runs these files, so their owner can become root. */
function warnOfOwner(path: string): void {
  const { uid } = statSync(path)
  if (uid !== 0)
    say(`islet: ${path} belongs to uid ${uid}, who can become root with it; install Islet as root.`)
}

/** Waits until the service runs and the server answers. */
async function untilUp(url: string): Promise<void> {
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline) {
    const { ActiveState, SubState, NRestarts } = await unitState('ActiveState', 'SubState', 'NRestarts')
    if (ActiveState === 'failed' || Number(NRestarts) > 1) break
    if (ActiveState === 'active' && SubState === 'running' && (await isHealthy(url))) return
    await sleep(POLL_MS)
  }
  throw new CliError('service_failed', `The service did not start. Its log:\n${await lastLines()}`, {
    hint: `journalctl -u ${UNIT} shows its log; systemctl stop ${UNIT} ends the retries.`,
  })
}

/** A server that was started by hand would occupy the port and answer in place of the service. */
async function assertFree(url: string): Promise<void> {
  const { ActiveState } = await unitState('ActiveState')
  if (ActiveState === 'active' || !(await isHealthy(url))) return
  throw new CliError('conflict', `Another server already answers at ${url}.`, {
    hint: 'Stop it and run this again: its sandboxes keep running and the service takes them over. Or choose another --port.',
  })
}

function urlOf({
  ISLET_HOST: host = '127.0.0.1',
  ISLET_PORT: port = '7400',
  ISLET_TLS_CERT: certificate,
}: Record<string, string>): string {
  const scheme = certificate ? 'https' : 'http'
  if (['0.0.0.0', '::', '[::]'].includes(host)) return `${scheme}://127.0.0.1:${port}`
  return `${scheme}://${host.includes(':') ? `[${host.replace(/[[\]]/g, '')}]` : host}:${port}`
}

async function isHealthy(url: string): Promise<boolean> {
  const health = connect({ url, retries: 0 }).health()
  return health.then(
    () => true,
    () => false,
  )
}
