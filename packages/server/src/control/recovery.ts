// What a new server does with the sandboxes of the one before: it adopts, restarts and sweeps.
import type { SandboxRecord } from '../db/sandboxes.ts'
import { Limiter } from '../lib/limiter.ts'
import type { Fleet } from './fleet.ts'
import { isSuspended } from './lifecycle.ts'
import { adoptMachine, type Machine } from './machine.ts'
import { settleNetwork } from './network.ts'
import type { SavedStates } from './saved/saved-states.ts'
import type { Suspension } from './suspension.ts'

/** How many sandboxes are restarted at once after a reboot of the machine. */
const RESTARTS_AT_ONCE = 4

export async function bringBack(
  fleet: Fleet,
  savedStates: SavedStates,
  suspension: Suspension,
): Promise<void> {
  const { engine, table } = fleet
  for (const record of table.live()) if (record.status === 'creating') table.remove(record.id)
  for (const record of table.live()) if (record.oneShot) await endOneShot(fleet, record)
  tellIsolation(fleet)
  const records = table.live()
  // A sandbox whose memory is on disk does not need the cell that a crash may have left, nor does a suspended one without freeze.
  const needsCell = (record: SandboxRecord) =>
    record.memory === null && (!isSuspended(record) || engine.capabilities.freeze === true)
  const kept = records.filter(needsCell)
  const alive = await engine.start(new Map(kept.map(({ cell, root }) => [cell, root.layer])))
  await savedStates.start()
  await sweepLayers(fleet, savedStates)
  const limiter = new Limiter(RESTARTS_AT_ONCE)
  for (const record of records) {
    const isAlive = alive.has(record.cell)
    if (isSuspended(record)) adoptSuspended(fleet, suspension, record, isAlive)
    else goOn(fleet, suspension, record, { isAlive, limiter })
  }
}

/** What it holds on the machine is swept with what belongs to no sandbox. */
async function endOneShot(fleet: Fleet, { id }: SandboxRecord): Promise<void> {
  fleet.move(id, 'stop', { reason: 'The server ended before its command did.', change: { memory: null } })
  await fleet.tellGone(id, { removed: true })
}

/** After a change of the isolation setting all sandboxes run with the new one. */
function tellIsolation({ engine, table }: Fleet): void {
  const { engine: name, isolation } = engine.capabilities
  for (const record of table.live())
    if (record.isolation !== isolation) table.save({ ...record, engine: name, isolation })
}

async function sweepLayers(fleet: Fleet, savedStates: SavedStates): Promise<void> {
  const { layers, storage, table } = fleet
  const holders = table.holding().map(({ id, root }) => ({ id, root }))
  layers.rebuild([...holders, ...savedStates.table.all()])
  await fleet.dropLayers((await storage.list()).filter((layer) => !layers.isHeld(layer)))
}

function goOn(
  fleet: Fleet,
  suspension: Suspension,
  record: SandboxRecord,
  { isAlive, limiter }: { isAlive: boolean; limiter: Limiter },
): void {
  const { id } = record
  const machine = isAlive ? thawed(fleet, record) : limiter.run(() => restart(fleet, record))
  fleet.machines.set(id, machine)
  suspension.activity.goOn(record)
  // Its jobs keep it awake. It does not become idle before all of them are found again.
  const release = suspension.activity.hold(id)
  const begun = machine.then(
    (started) => {
      fleet.log.info({ sandbox: id, adopted: isAlive }, 'sandbox brought back')
      fleet.follow(id, started)
      return fleet.tellBegan(
        { record: fleet.record(id), machine: started },
        isAlive ? 'adopted' : 'restarted',
      )
    },
    (error) => fleet.fail(id, `It could not be brought back: ${error.message}`),
  )
  fleet.inBackground(id, begun.finally(release))
}

/** The server before may have been killed while the sandbox was frozen for a checkpoint. */
async function thawed(fleet: Fleet, record: SandboxRecord): Promise<Machine> {
  const machine = await adoptMachine(fleet, record)
  if (fleet.engine.capabilities.freeze === true) await fleet.engine.thaw(machine.cell)
  await settleNetwork(fleet, record.id, machine)
  return machine
}

async function restart(fleet: Fleet, record: SandboxRecord): Promise<Machine> {
  const started = await fleet.startOver(record.id)
  fleet.events.add(record.id, 'restarted', { reason: 'What ran in it had ended while the server was away.' })
  return started
}

/** The next use wakes it. Its cell is kept frozen; without a cell it starts again from its files. */
function adoptSuspended(fleet: Fleet, suspension: Suspension, record: SandboxRecord, isAlive: boolean): void {
  suspension.activity.goOn(record)
  if (!isAlive) return
  const machine = adoptMachine(fleet, record).then(async (adopted) => {
    await suspension.adopt(adopted)
    await settleNetwork(fleet, record.id, adopted)
    fleet.follow(record.id, adopted)
    return adopted
  })
  fleet.machines.set(record.id, machine)
  machine.catch((error) => {
    fleet.log.warn({ error, sandbox: record.id }, 'the cell of a suspended sandbox was not adopted')
    fleet.machines.delete(record.id)
  })
}
