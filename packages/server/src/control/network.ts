// Switching the network of a sandbox that is there.
//
//   the record says what is wanted, and that it is due  →  the wire, at once  →  the files of /etc that name it  →  no longer due
//
// One that stands still has its wire switched at once too; its files wait for its wake. One without a cell gets all of it when it is
// given one. What a crash cuts off is due still, and the next server does it.
import { setTimeout } from 'node:timers/promises'
import { IsletError } from '@islet/contract'
import { notSupported } from '../engine/engine.ts'
import type { Guest } from '../guest/guest.ts'
import { type Place, rewriteEtc } from './etc.ts'
import type { Fleet } from './fleet.ts'
import { assertMade, assertNotStopped } from './lifecycle.ts'
import type { Machine } from './machine.ts'

/**
 * How long the guest may take for the files. Nothing else is done to the sandbox meanwhile, not even its delete, so a guest that
 * does not answer must not keep it longer. Ordinary is a few milliseconds.
 */
const TELL_TIMEOUT_MS = 10_000
/** Of a file of hosts that is changed; a longer one is left alone. */
const MAX_HOSTS_BYTES = 256 * 1024

/** If it cannot be done, the sandbox is as it was. */
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

/** What is due of one that goes on, or was found again. It may fail: then it is due at the next wake or start. */
export async function settleNetwork(fleet: Fleet, id: string, machine: Machine): Promise<void> {
  if (!fleet.record(id).networkDue) return
  await carryOut(fleet, id, machine).catch((error) =>
    fleet.log.warn({ error, sandbox: id }, 'its network is not switched yet'),
  )
}

function want(fleet: Fleet, id: string, enabled: boolean, reason?: string): void {
  fleet.db.transaction(() => {
    const changed = { network: { enabled }, networkDue: true, updatedAt: Date.now() }
    fleet.table.save({ ...fleet.record(id), ...changed })
    fleet.events.add(id, 'network.changed', { enabled, ...(reason !== undefined && { reason }) })
  })
}

async function carryOut(fleet: Fleet, id: string, known?: Machine): Promise<void> {
  const record = fleet.record(id)
  // One without a cell is given its network together with one.
  const machine = known ?? (record.status === 'failed' ? undefined : await fleet.machineWithCell(record))
  if (machine) {
    const place = await fleet.engine.connect(machine.cell, record.network)
    const { address: _address, nameserver: _nameserver, ...bound } = machine.bound
    machine.bound = { ...bound, ...place }
    if (machine.suspended) return
    await tell(machine.guest, id, place).catch((error) => {
      // Nothing inside can keep its network by keeping its files, or by not answering.
      if (record.network.enabled) throw error
      fleet.log.debug({ error, sandbox: id }, 'its files still name a network')
    })
  }
  fleet.table.save({ ...fleet.record(id), networkDue: false })
}

/** By the guest, inside: nothing of the sandbox is followed on this machine. */
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
