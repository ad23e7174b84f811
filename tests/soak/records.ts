// State that the server keeps in its own rows: the store, the environment, services.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServiceInfo, StoreSet } from '@islet/contract'
import { Refused, unless } from '../faults/state-world.ts'
import { needs } from '../support/programs.ts'
import type { Client } from './client.ts'
import { apply, type Known, without } from './model.ts'

needs('pgrep')

const KEYS = ['a', 'b', 'c d', 'deep.e', 'ü']
const TTL_SECONDS = [3600, 4 * 3600]
const SERVICE = 'beat'
const RUNS_BY_MS = 120_000

export async function setStore(client: Client, sandbox: Known): Promise<void> {
  const [key, value] = [client.random.pick(KEYS)!, client.text()]
  const path = `/sandboxes/${sandbox.id}/store/${encodeURIComponent(key)}`
  if (client.random.chance(0.25)) {
    await client.surely('delete from the store', sandbox, 'DELETE', path)
    apply(sandbox, (state) => ({ ...state, store: without(state.store, (name) => name === key) }))
    return
  }
  const expires = client.random.chance(0.25) ? { ttl_seconds: client.random.pick(TTL_SECONDS)! } : {}
  const setAt = Date.now()
  const { expires_at } = await client.surely<StoreSet>('set in the store', sandbox, 'PUT', path, {
    value,
    ...expires,
  })
  const stored = { value, setAt, ...(expires_at !== null && { expiresAt: Date.parse(expires_at) }) }
  apply(sandbox, (state) => ({ ...state, store: { ...state.store, [key]: stored } }))
}

export async function setEnv(client: Client, sandbox: Known): Promise<void> {
  const env = client.text()
  await client.surely('set the environment', sandbox, 'PATCH', `/sandboxes/${sandbox.id}`, {
    env: { MODEL: env },
  })
  apply(sandbox, (state) => ({ ...state, env }))
}

export async function changeService(client: Client, sandbox: Known): Promise<void> {
  if (sandbox.states.length > 1) return
  const path = `/sandboxes/${sandbox.id}/services`
  if (sandbox.states[0]!.service !== undefined) {
    await client
      .surely('delete a service', sandbox, 'DELETE', `${path}/${SERVICE}`)
      .catch(unless('service_not_found'))
    apply(sandbox, (state) => ({ ...state, service: undefined }))
    return
  }
  const service = String(100_000 + Math.floor(client.random.next() * 100_000))
  const body = { name: SERVICE, start: `exec sleep ${service}` }
  await client.surely('start a service', sandbox, 'POST', path, body).catch(async (error) => {
    // The attempt before was carried out.
    if (!(error instanceof Refused) || error.code !== 'conflict') throw error
    assert.equal(await serviceOf(client, sandbox), service, error.message)
  })
  apply(sandbox, (state) => ({ ...state, service }))
}

/** The time for which the service of a sandbox sleeps. */
export async function serviceOf(client: Client, sandbox: Known): Promise<string | undefined> {
  const path = `/sandboxes/${sandbox.id}/services`
  const { services } = await client.surely<{ services: ServiceInfo[] }>('list services', sandbox, 'GET', path)
  return services
    .find(({ name }) => name === SERVICE)
    ?.start.split(' ')
    .at(-1)
}

/** Whatever happened to the sandbox, its service is wanted and so it runs, once. */
export async function assertServes(client: Client, sandbox: Known): Promise<void> {
  const { service } = sandbox.states[0]!
  const path = `/sandboxes/${sandbox.id}/services/${SERVICE}`
  const deadline = Date.now() + RUNS_BY_MS
  for (;;) {
    const info = await client.surely<ServiceInfo>('get a service', sandbox, 'GET', path)
    const { stdout } = await client.exec('exec', sandbox, 'pgrep -fc "^sleep $1" || :', service!)
    if (info.status === 'running' && stdout === '1\n') return
    if (Date.now() > deadline)
      assert.fail(`${sandbox.id}: ${stdout} of its service run: ${JSON.stringify(info)}`)
    await sleep(100)
  }
}

export async function readStore(client: Client, sandbox: Known): Promise<Record<string, string>> {
  const path = `/sandboxes/${sandbox.id}/store`
  const { keys } = await client.surely<{ keys: string[] }>('list the store', sandbox, 'GET', path)
  const store: Record<string, string> = {}
  for (const key of keys) {
    const entry = await client
      .surely<{ value: string }>('get from the store', sandbox, 'GET', `${path}/${encodeURIComponent(key)}`)
      // It has already expired.
      .catch(unless('key_not_found'))
    if (entry) store[key] = entry.value
  }
  return store
}
