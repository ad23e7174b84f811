// Files of /etc that say who and where a sandbox is. The engine writes them with the root; if it cannot, the guest does.
import { hash } from 'node:crypto'
import { IsletError } from '@islet/contract'
import type { Bound } from '../engine/engine.ts'
import type { Guest } from '../guest/guest.ts'
import type { Log } from '../log.ts'

/** What a sandbox knows of its network. */
export type Place = Pick<Bound, 'address' | 'nameserver'>

/** By name below /etc. A root must hold them before the first command runs. */
export function etcFiles(id: string, { address, nameserver }: Place): Record<string, string> {
  const hosts = ['127.0.0.1 localhost', '::1 localhost ip6-localhost', `${ownAddress(address)} ${id}`]
  return {
    hostname: `${id}\n`,
    hosts: `${hosts.join('\n')}\n`,
    'machine-id': `${hash('sha256', id).slice(0, 32)}\n`,
    'resolv.conf': resolvConf(nameserver),
  }
}

/** A sandbox whose /etc/hosts is a directory, or whose /etc is a file, keeps that and starts all the same. */
export async function writeEtc(log: Log, guest: Guest, id: string, place: Place): Promise<void> {
  try {
    await setup(guest, etcFiles(id, place))
  } catch (error) {
    if (!(error instanceof IsletError) || error.code === 'sandbox_lost') throw error
    log.warn({ error, sandbox: id }, 'some files in /etc of the sandbox cannot be written')
  }
}

/** After its network was switched. `hosts` is what /etc/hosts holds now: only the address in the sandbox's own line changes. */
export async function rewriteEtc(
  guest: Guest,
  id: string,
  place: Place,
  hosts: string | undefined,
): Promise<void> {
  const ownLine = new RegExp(`^[\\d.]+([ \\t]+${id})$`, 'm')
  await setup(guest, {
    'resolv.conf': resolvConf(place.nameserver),
    ...(hosts && ownLine.test(hosts) && { hosts: hosts.replace(ownLine, `${ownAddress(place.address)}$1`) }),
  })
}

async function setup(guest: Guest, etc: Record<string, string>): Promise<void> {
  const files = Object.entries(etc).map(([name, content]) => ({
    path: `/etc/${name}`,
    content,
    mode: 0o644,
    owner: '0:0',
  }))
  await guest.setup(files)
}

const ownAddress = (address: string | undefined): string => address ?? '127.0.1.1'

function resolvConf(nameserver: string | undefined): string {
  return nameserver ? `nameserver ${nameserver}\noptions timeout:2 attempts:2\n` : ''
}
