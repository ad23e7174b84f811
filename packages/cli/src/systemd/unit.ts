// The text of islet.service. Each line that is not obvious says why it is there, for whoever reads the unit on a machine.
import { CliError } from '../errors.ts'

export interface UnitOptions {
  /** The programs that run now; absolute. */
  node: string
  islet: string
  /** ISLET_DATA_DIR and what else of the environment was asked for. Nothing secret: units can be read by all. */
  settings: Record<string, string>
  /** Groups that installing made; uninstall --purge removes these and no others. */
  madeGroups?: readonly string[]
  /** Of systemd; 0 when it is not known. */
  version: number
}

export const ENVIRONMENT_FILE = '/etc/islet/environment'

/** The first systemd that waits longer after each failed start. */
const KNOWS_BACKOFF = 254

export function renderUnit({ node, islet, settings, madeGroups = [], version }: UnitOptions): string {
  const environment = Object.entries(settings).map(
    ([name, value]) => `Environment=${quote(`${name}=${value}`)}`,
  )
  const backoff = version >= KNOWS_BACKOFF ? ['RestartSteps=6', 'RestartMaxDelaySec=60'] : []
  return `# Written by islet service install, which writes it anew: put changes into systemctl edit islet.service,
# settings that are secret into ${ENVIRONMENT_FILE} (mode 0600), other settings into config.json in the data directory.
[Unit]
Description=Islet, a Linux computer for every AI agent
# After those that flush the firewall when they start.
After=network.target nftables.service firewalld.service
RequiresMountsFor=${quote(settings.ISLET_DATA_DIR ?? '/')}
${madeGroups.map((name) => `# Not for systemd: this group did not exist before.\nX-IsletMadeGroup=${quote(name)}\n`).join('')}# It is tried again for ever.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${[node, islet, 'serve', '--no-setup'].map(quoteWord).join(' ')}
${environment.join('\n')}
EnvironmentFile=-${ENVIRONMENT_FILE}

Restart=always
RestartSec=1
${backoff.map((line) => `${line}\n`).join('')}# The settings are wrong: starting again does not mend them.
RestartPreventExitStatus=2
TimeoutStopSec=60

# Only the server is stopped. Sandboxes have cgroups of their own beside this unit's (engine oci) or are children of it
# (engine process); either way they go on, and the next server takes them over.
KillMode=process
# Has systemd keep the controllers cpu, memory, pids and io switched on, which the cgroups of sandboxes need.
Delegate=yes
TasksMax=infinity

# When memory is short the kernel ends programs of sandboxes first; those begin at 0 again, whatever the server has.
OOMScoreAdjust=-500
OOMPolicy=continue
# A few for each sandbox. Programs inside inherit it, and some take a step for each number, so it is not larger.
LimitNOFILE=65536
UMask=0022

# What neither the server nor a sandbox ever needs. (Root in a sandbox has capabilities of its own user namespace.)
CapabilityBoundingSet=~CAP_AUDIT_CONTROL CAP_AUDIT_READ CAP_BLOCK_SUSPEND CAP_LEASE CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_SYS_BOOT CAP_SYS_PACCT CAP_SYS_RAWIO CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_SYSLOG CAP_WAKE_ALARM
# Left off, because sandboxes inherit it: NoNewPrivileges and RestrictSUIDSGID (sudo inside), SystemCallFilter, RestrictNamespaces,
# RestrictAddressFamilies, RestrictRealtime, LockPersonality, MemoryDenyWriteExecute (sandboxes have a filter of their own).
# Left off, because they give the unit a mount namespace, in which the pool would vanish with the server that mounted it:
# ProtectSystem, ProtectHome, ProtectKernel*, ProtectControlGroups, ProtectProc, PrivateTmp, PrivateDevices, ReadOnlyPaths.
# Left off, because the server makes bridges and firewall tables: PrivateNetwork, IPAddressDeny.

[Install]
WantedBy=multi-user.target
`
}

/** The settings of a unit that renderUnit wrote. */
export function settingsOf(unit: string): Record<string, string> {
  const settings: Record<string, string> = {}
  for (const match of unit.matchAll(/^Environment="(ISLET_[A-Z_]+)=((?:[^"\\]|\\.)*)"$/gm))
    settings[match[1]!] = match[2]!.replace(/\\(.)/g, '$1').replaceAll('%%', '%')
  return settings
}

/** The groups of a unit that renderUnit wrote. */
export function madeGroupsOf(unit: string): string[] {
  return [...unit.matchAll(/^X-IsletMadeGroup="([^"\\%]+)"$/gm)].map(([, name]) => name!)
}

/** In ExecStart also `$` stands for something. */
function quoteWord(word: string): string {
  return quote(word.replaceAll('$', '$$$$'))
}

function quote(text: string): string {
  if (/\p{Cc}/u.test(text))
    throw new CliError('bad_path', `${JSON.stringify(text)} cannot be written into a unit.`, {
      hint: 'Choose a path without control characters.',
    })
  return `"${text.replaceAll('%', '%%').replace(/["\\]/g, '\\$&')}"`
}
