// Switches the network of an existing sandbox.
//
//   the record says what is wanted, and that it is due  →  the interface  →  the files in /etc that name it  →  no longer due
//
// The interface of a suspended sandbox is switched at once; its files wait for its wake. A sandbox without a cell gets its network
// together with one. After a crash the switch is still due, and the next server does it.
import { setTimeout } from 'node:timers/promises'
import { IsletError } from '@islet/contract'
import { notSupported } from '../engine/engine.ts'
import type { Guest } from '../guest/guest.ts'
import { type Place, rewriteEtc } from './etc.ts'
import type { Fleet } from './fleet.ts'
import { assertMade, assertNotStopped } from './lifecycle.ts'
import type { Machine } from './machine.ts'

/** How long the guest may take for the files, usually a few milliseconds. All other changes of the sandbox wait meanwhile. */
const TELL_TIMEOUT_MS = 10_000
/** A longer /etc/hosts is not changed. */
const MAX_HOSTS_BYTES = 256 * 1024

/** On an error the sandbox keeps the network it had. */
export function switchNetwork(fleet: Fleet, id: string, enabled: boolean): Promise<void> {
  return fleet.inTurn(id, async () => {
    const before = fleet.record(id)
    assertMade(before)
    assertNotStopped(before)
    if (before.network.enabled === enabled && !before.networkDue) return
    const { networkSwitch } = fleet.engine.capabilities
    if (networkSwitch !== true) throw notSupported(networkSwitch)
    if (before.network.enabled !== enabled) want(fleet, id, enabled)
    try {
      await carryOut(fleet, id)
    } catch (error) {
      const { message } = error as Error
      want(fleet, id, before.network.enabled, message)
      await carryOut(fleet, id).catch(() => {})
      if (error instanceof IsletError) throw error
      throw new IsletError('engine_unavailable', `The network could not be switched: ${message}`, {
        cause: error,
      })
    }
  })
}

/** Does a due switch after a wake or a restart. If it fails, it stays due. */
export async function settleNetwork(fleet: Fleet, id: string, machine: Machine): Promise<void> {
  if (!fleet.record(id).networkDue) return
  await carryOut(fleet, id, machine).catch((error) =>
    fleet.log.warn(
      { error, sandbox: id },
      'the network of the sandbox is not switched yet; it is retried at the next wake or start',
    ),
  )
}

function want(fleet: Fleet, id: string, enabled: boolean, reason?: string): void {
  fleet.db.transaction(() => {
    const record = fleet.record(id)
    const network = { ...record.network, enabled }
    fleet.table.save({ ...record, network, networkDue: true, updatedAt: Date.now() })
    fleet.events.add(id, 'network.changed', { enabled, ...(reason !== undefined && { reason }) })
  })
}

async function carryOut(fleet: Fleet, id: string, known?: Machine): Promise<void> {
  const record = fleet.record(id)
  // A sandbox without a cell gets its network together with one.
  const machine = known ?? (record.status === 'failed' ? undefined : await fleet.machineWithCell(record))
  if (machine) {
    const place = await fleet.engine.connect(machine.cell, record.network)
    const { address: _address, nameserver: _nameserver, ...bound } = machine.bound
    machine.bound = { ...bound, ...place }
    if (machine.suspended) return
    await tell(machine.guest, id, place).catch((error) => {
      // Nothing inside can keep the network on by refusing to change files or not answering.
      if (record.network.enabled) throw error
      fleet.log.debug({ error, sandbox: id }, 'files in /etc still name a network that is off')
    })
  }
  fleet.table.save({ ...fleet.record(id), networkDue: false })
}

/** Written by the guest inside, so no path of the sandbox is followed on the host. */
async function tell(guest: Guest, id: string, place: Place): Promise<void> {
  const over = new AbortController()
  const late = setTimeout(TELL_TIMEOUT_MS, undefined, { ref: false, signal: over.signal }).then(() => {
    throw new Error('The sandbox does not answer.')
  })
  try {
    await Promise.race([writeFiles(guest, id, place, over.signal), late])
  } finally {
    over.abort()
  }
}

async function writeFiles(guest: Guest, id: string, place: Place, signal: AbortSignal): Promise<void> {
  await guest.ready({ timeoutMs: TELL_TIMEOUT_MS })
  const hosts = await readText(guest, '/etc/hosts', signal)
  // A late write could undo a later switch.
  signal.throwIfAborted()
  await rewriteEtc(guest, id, place, hosts)
}

async function readText(guest: Guest, path: string, signal: AbortSignal): Promise<string | undefined> {
  const parts: Buffer[] = []
  let bytes = 0
  try {
    const { body } = await guest.read(path, { signal })
    for await (const part of body) {
      parts.push(Buffer.from(part))
      bytes += part.length
      if (bytes > MAX_HOSTS_BYTES) return undefined
    }
  } catch {
    return undefined
  }
  return Buffer.concat(parts).toString()
}
