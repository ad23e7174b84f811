// The text of islet.service. Its comments are for administrators who read the unit.
import { CliError } from '../errors.ts'

export interface UnitOptions {
  /** Absolute paths of the programs that run now. */
  node: string
  islet: string
  /** ISLET_* variables. No secrets: every user can read a unit. */
  settings: Record<string, string>
  /** Groups that install created; uninstall --purge removes only these. */
  madeGroups?: readonly string[]
  /** Version of systemd; 0 if unknown. */
  version: number
}

export const ENVIRONMENT_FILE = '/etc/islet/environment'

/** The first version of systemd that waits longer after each failed start. */
const KNOWS_BACKOFF = 254

export function renderUnit({ node, islet, settings, madeGroups = [], version }: UnitOptions): string {
  const environment = Object.entries(settings).map(
    ([name, value]) => `Environment=${quote(`${name}=${value}`)}`,
  )
  const backoff = version >= KNOWS_BACKOFF ? ['RestartSteps=6', 'RestartMaxDelaySec=60'] : []
  return `# Written by islet service install, which overwrites it. Make changes with systemctl edit islet.service.
# Put secret settings into ${ENVIRONMENT_FILE} (mode 0600), other settings into config.json in the data directory.
[Unit]
Description=Islet, a Linux computer for every AI agent
# These flush the firewall when they start, so they must start first.
After=network.target nftables.service firewalld.service
RequiresMountsFor=${quote(settings.ISLET_DATA_DIR ?? '/')}
${madeGroups.map((name) => `# Not for systemd: install created this group.\nX-IsletMadeGroup=${quote(name)}\n`).join('')}# Retry without limit.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${[node, islet, 'serve', '--no-setup'].map(quoteWord).join(' ')}
${environment.join('\n')}
EnvironmentFile=-${ENVIRONMENT_FILE}

Restart=always
RestartSec=1
${backoff.map((line) => `${line}\n`).join('')}# Exit code 2: the settings are wrong, so a restart does not help.
RestartPreventExitStatus=2
TimeoutStopSec=60

# Stopping the unit stops only the server. Sandboxes have their own cgroups (engine oci) or are children of the server
# (engine process); in both cases they keep running, and the next server takes them over.
KillMode=process
# Keeps the controllers cpu, memory, pids and io enabled, which the cgroups of sandboxes need.
Delegate=yes
TasksMax=infinity

# If memory runs out, the kernel kills programs in sandboxes first: their score starts at 0.
OOMScoreAdjust=-500
OOMPolicy=continue
# Each sandbox needs a few. Programs inside inherit the limit, and some loop over all numbers, so it is not larger.
LimitNOFILE=65536
UMask=0022

# Neither the server nor a sandbox needs these. Root in a sandbox has the capabilities of its own user namespace.
CapabilityBoundingSet=~CAP_AUDIT_CONTROL CAP_AUDIT_READ CAP_BLOCK_SUSPEND CAP_LEASE CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_SYS_BOOT CAP_SYS_PACCT CAP_SYS_RAWIO CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_SYSLOG CAP_WAKE_ALARM
# Not set, because sandboxes inherit them: NoNewPrivileges and RestrictSUIDSGID (sudo inside), SystemCallFilter, RestrictNamespaces,
# RestrictAddressFamilies, RestrictRealtime, LockPersonality, MemoryDenyWriteExecute (sandboxes have their own filter).
# Not set, because they give the unit a mount namespace, and the pool in it would vanish with the server:
# ProtectSystem, ProtectHome, ProtectKernel*, ProtectControlGroups, ProtectProc, PrivateTmp, PrivateDevices, ReadOnlyPaths.
# Not set, because the server creates bridges and firewall tables: PrivateNetwork, IPAddressDeny.

[Install]
WantedBy=multi-user.target
`
}

/** Reads the settings back from a rendered unit. */
export function settingsOf(unit: string): Record<string, string> {
  const settings: Record<string, string> = {}
  for (const match of unit.matchAll(/^Environment="(ISLET_[A-Z_]+)=((?:[^"\\]|\\.)*)"$/gm))
    settings[match[1]!] = match[2]!.replace(/\\(.)/g, '$1').replaceAll('%%', '%')
  return settings
}

/** Reads the created groups back from a rendered unit. */
export function madeGroupsOf(unit: string): string[] {
  return [...unit.matchAll(/^X-IsletMadeGroup="([^"\\%]+)"$/gm)].map(([, name]) => name!)
}

/** ExecStart also expands `$`. */
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
