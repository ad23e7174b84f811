// The port that a sandbox has a preview of from the beginning: `network.port` and `url` of its record.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  type CreatedSandbox,
  LIMITS,
  type Preview,
  type Sandbox,
  type SandboxDetail,
  sandboxPage,
} from '@islet/contract'
import { accepts, freePort, get, openLab } from '../support/preview.ts'
import { errorOf, startTestApi, type TestApi } from '../support/server.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(() => api[Symbol.asyncDispose]())

const at = ({ id }: { id: string }, path = '') => `/v1/sandboxes/${id}${path}`
async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await api.call(method, path, body)
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${response.ok ? '' : await response.text()}`)
  return (response.status === 204 ? undefined : await response.json()) as T
}
const read = (sandbox: { id: string }) => ask<SandboxDetail>('GET', at(sandbox))
const setPort = (sandbox: { id: string }, port: number | null) =>
  ask<Sandbox>('PATCH', at(sandbox), { network: { port } })
const previewsOf = async (sandbox: { id: string }) =>
  (await ask<{ previews: Preview[] }>('GET', at(sandbox, '/previews'))).previews
/** What its record says, which must be what there is. */
async function shown(sandbox: { id: string }): Promise<[port: number | null, url: string | null]> {
  const { network, url } = await read(sandbox)
  const [preview] = (await previewsOf(sandbox)).filter(({ port }) => port === network.port)
  assert.equal(url, preview?.url ?? null)
  return [network.port, url]
}

test('a sandbox is created with the URL of a port, and every record of it has that URL', async () => {
  await using lab = await openLab()
  const page = await lab.show((_, outgoing) => void outgoing.end('page'))
  const made = await api.createSandbox({ network: { port: page.port } })
  assert.deepEqual(made.network, { enabled: false, port: page.port })
  assert.equal((await get(made.url!)).text, 'page')
  assert.deepEqual(await shown(made), [page.port, made.url])
  const list = sandboxPage.parse(await ask('GET', '/v1/sandboxes'))
  assert.equal(list.sandboxes.find(({ id }) => id === made.id)?.url, made.url)
  for (const verb of ['hibernate', 'wake', 'timeout'])
    assert.equal((await ask<Sandbox>('POST', at(made, `/${verb}`), {})).url, made.url)
  const plain = await api.createSandbox()
  assert.deepEqual([plain.network, plain.url], [{ enabled: false, port: null }, null])
  const gone = await ask<Sandbox>('DELETE', at(made))
  assert.deepEqual([gone.network.port, gone.url], [page.port, null])
  assert.equal(await accepts(made.url!), false)
})

test('the port is changed and removed; the preview of the previous port goes, others stay', async () => {
  const made = await api.createSandbox({ network: { port: 3000 } })
  const other = await ask<Preview>('POST', at(made, '/previews'), { port: 8080 })
  const moved = await setPort(made, 4000)
  assert.deepEqual([moved.network.port, await accepts(made.url!)], [4000, false])
  assert.deepEqual(await shown(made), [4000, moved.url])
  assert.deepEqual(await setPort(made, 4000).then(({ url }) => url), moved.url)
  assert.equal((await setPort(made, 8080)).url, other.url)
  assert.deepEqual(
    (await previewsOf(made)).map(({ port }) => port),
    [8080],
  )
  const none = await setPort(made, null)
  assert.deepEqual([none.network.port, none.url, await accepts(other.url)], [null, null, false])
  assert.deepEqual(await previewsOf(made), [])
  await setPort(made, null)
  const ports = [5000, 5001, 5002, null, 5003]
  await Promise.all(ports.map((port) => setPort(made, port)))
  const [port] = await shown(made)
  const left = (await previewsOf(made)).map((preview) => preview.port)
  assert.deepEqual(left, port === null ? [] : [port])
})

test('a preview that is deleted takes the port out of the record, and one that is protected stays in it', async () => {
  const made = await api.createSandbox({ network: { port: 3000 } })
  const changed = await ask<Preview>('POST', at(made, '/previews'), {
    port: 3000,
    authConfig: { type: 'token' },
  })
  assert.equal(changed.url, made.url)
  assert.deepEqual(await shown(made), [3000, made.url])
  assert.ok(!JSON.stringify(await read(made)).includes('hash'))
  await ask('DELETE', at(made, '/previews/3000'))
  assert.deepEqual(await shown(made), [null, null])
})

test('copies have a preview of their own, which asks for the same token', async () => {
  const source = await api.createSandbox({ network: { port: 3000 }, env: { A: '1' } })
  const [plain] = (await ask<{ forks: { sandbox: CreatedSandbox }[] }>('POST', at(source, '/fork'), {})).forks
  assert.deepEqual(await shown(plain!.sandbox), [3000, plain!.sandbox.url])
  assert.notEqual(plain!.sandbox.url, source.url)
  const { token } = await ask<Preview>('POST', at(source, '/previews'), {
    port: 3000,
    authConfig: { type: 'token' },
  })
  const checkpoint = await ask<{ id: string }>('POST', at(source, '/checkpoints'), { name: 'one' })
  const snapshot = await ask<{ id: string }>('POST', '/v1/snapshots', { sandbox: source.id })
  const forks = await ask<{ forks: { sandbox: CreatedSandbox }[] }>('POST', at(source, '/fork'), { count: 2 })
  const copies = [
    ...forks.forks.map(({ sandbox }) => sandbox),
    await ask<CreatedSandbox>('POST', `/v1/checkpoints/${checkpoint.id}/sandboxes`, {}),
    await api.createSandbox({ snapshot: snapshot.id }),
  ]
  const urls = new Set([source.url, ...copies.map(({ url }) => url)])
  assert.equal(urls.size, 1 + copies.length)
  for (const copy of copies) {
    assert.deepEqual(await shown(copy), [3000, copy.url])
    assert.equal((await fetch(copy.url!)).status, 401)
    // Let through: nothing listens behind it.
    const visit = await fetch(copy.url!, { headers: { Authorization: `Bearer ${token}` } })
    assert.equal(visit.status, 502)
  }
  const without = await api.createSandbox({ snapshot: snapshot.id, network: { port: null } })
  assert.deepEqual(await shown(without), [null, null])
  const elsewhere = await api.createSandbox({ snapshot: snapshot.id, network: { port: 4000 } })
  assert.deepEqual(await shown(elsewhere), [4000, elsewhere.url])
  assert.notEqual((await fetch(elsewhere.url!)).status, 401)
  // A restore changes neither.
  await setPort(source, 5000)
  const restored = await ask<{ sandbox: Sandbox }>(
    'POST',
    at(source, `/checkpoints/${checkpoint.id}/restore`),
  )
  assert.deepEqual(await shown(source), [5000, restored.sandbox.url])
})

test('an exported snapshot has the port, unless it asks for a token', async () => {
  const source = await api.createSandbox({ network: { port: 3000 } })
  const exported = async () => {
    const { id } = await ask<{ id: string }>('POST', '/v1/snapshots', { sandbox: source.id })
    const file = await api.call('GET', `/v1/snapshots/${id}/export`)
    const bytes = new Uint8Array(await file.arrayBuffer())
    const imported = (await (await api.call('POST', '/v1/snapshots/import', bytes)).json()) as { id: string }
    return api.createSandbox({ snapshot: imported.id })
  }
  const open = await exported()
  assert.deepEqual(await shown(open), [3000, open.url])
  await ask('POST', at(source, '/previews'), { port: 3000, authConfig: { type: 'token' } })
  assert.deepEqual(await shown(await exported()), [null, null])
})

test('what cannot be is refused, and a create that gets no preview leaves no sandbox', async () => {
  const port = await freePort()
  await using small = await startTestApi({ previewPorts: `${port}-${port}` })
  const create = (network: object) => small.call('POST', '/v1/sandboxes', { network })
  for (const network of [{ port: 0 }, { port: 65_536 }, { port: 1.5 }, { port: '80' }, { prot: 80 }])
    assert.equal((await errorOf(await create(network))).code, 'bad_request', JSON.stringify(network))
  const first = (await (await create({ port: 3000 })).json()) as Sandbox
  assert.equal(new URL(first.url!).port, String(port))
  const total = async () =>
    ((await (await small.call('GET', '/v1/sandboxes')).json()) as { total: number }).total
  assert.equal((await errorOf(await create({ port: 3000 }))).code, 'limit_exceeded')
  assert.equal(await total(), 1)
  const second = await small.createSandbox({ name: 'second' })
  const patch = { name: 'other', network: { port: 3000 } }
  const refused = await errorOf(await small.call('PATCH', at(second), patch))
  assert.equal(refused.code, 'limit_exceeded')
  const kept = (await (await small.call('GET', at(second))).json()) as Sandbox
  assert.deepEqual([kept.name, kept.network.port, kept.url], ['second', null, null])
  assert.equal((await errorOf(await create({ enabled: false, port: 3000 }))).code, 'not_supported')
})

test('the number of previews stays bounded', async () => {
  const made = await api.createSandbox()
  for (let port = 1; port <= LIMITS.previews; port++) await ask('POST', at(made, '/previews'), { port })
  const refused = await api.call('PATCH', at(made), { network: { port: 1000 } })
  assert.equal((await errorOf(refused)).code, 'limit_exceeded')
  assert.equal((await setPort(made, 1)).network.port, 1)
})

test('a token of the sandbox may change the port, as it may make previews', async () => {
  const made = await api.createSandbox({ network: { port: 3000 } })
  const headers = { Authorization: `Bearer ${made.token}` }
  const response = await api.call('PATCH', at(made), { network: { port: 4000 } }, { headers })
  assert.equal(response.status, 200)
  const asked = await api.call('PATCH', at(made), { network: { enabled: true, port: 1 } }, { headers })
  assert.equal((await errorOf(asked)).code, 'forbidden')
  assert.equal((await shown(made))[0], 4000)
})

test('on a server that listens everywhere the URL has the name by which the caller came', async () => {
  await using everywhere = await startTestApi({ host: '0.0.0.0' })
  const made = await everywhere.createSandbox({ network: { port: 3000 } })
  const { port } = new URL(made.url!)
  for (const name of ['127.0.0.1', 'localhost']) {
    const url = `http://${name}:${everywhere.port}${at(made)}`
    const named = await fetch(url, { headers: { Authorization: `Bearer ${made.token}` } })
    assert.equal(((await named.json()) as Sandbox).url, `http://${name}:${port}`)
  }
})
