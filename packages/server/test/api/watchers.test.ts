import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type CreateWatcher, LIMITS, newId, type Sandbox, type WatcherInfo } from '@islet/contract'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'
import { WatchClient } from '../support/watch-client.ts'

describe('a watcher', () => {
  let api: TestApi
  let sandbox: Sandbox
  before(async () => {
    api = await startTestApi()
    sandbox = await api.createSandbox()
  })
  after(() => api[Symbol.asyncDispose]())

  const routeOf = (more = '', of = sandbox) => `/v1/sandboxes/${of.id}/watchers${more}`
  const create = async (input: CreateWatcher, of = sandbox): Promise<WatcherInfo> => {
    const response = await api.call('POST', routeOf('', of), input)
    assert.equal(response.status, 201, await response.clone().text())
    return (await response.json()) as WatcherInfo
  }
  const get = async (id: string) => (await (await api.call('GET', routeOf(`/${id}`))).json()) as WatcherInfo
  const destroy = (id: string) => api.call('DELETE', routeOf(`/${id}`))
  const follow = ({ channel, path }: WatcherInfo) =>
    WatchClient.open(api.url.replace('http', 'ws') + channel, path)
  const fresh = (name: string) => {
    const directory = join(sandbox.workdir, name)
    mkdirSync(directory)
    return directory
  }
  /** A watcher with a client on a new directory. */
  const watch = async (name: string, input: Partial<CreateWatcher> = {}) => {
    const directory = fresh(name)
    const watcher = await create({ path: directory, ...input })
    return { directory, watcher, client: await follow(watcher) }
  }

  it('tells every kind of event', async () => {
    const { directory, client } = await watch('kinds')
    const at = (name: string) => join(directory, name)
    mkdirSync(at('dir'))
    await client.until('addDir dir')
    writeFileSync(at('dir/file'), 'x')
    await client.until('add dir/file')
    appendFileSync(at('dir/file'), 'y')
    await client.until('change dir/file')
    rmSync(at('dir/file'))
    await client.until('unlink dir/file')
    rmSync(at('dir'), { recursive: true })
    const seen = await client.until('unlinkDir dir')
    assert.deepEqual(
      [...new Set(seen)],
      ['addDir dir', 'add dir/file', 'change dir/file', 'unlink dir/file', 'unlinkDir dir'],
    )
    assert.equal('content' in client.changes[1]!, false)
  })

  it('sees every file of a directory that is made and filled at once', async () => {
    const { directory, client } = await watch('filled')
    mkdirSync(join(directory, 'a/b'), { recursive: true })
    const expected = new Set(['addDir a', 'addDir a/b'])
    for (let n = 0; n < 1000; n++) {
      writeFileSync(join(directory, `a/b/${n}`), '')
      expected.add(`add a/b/${n}`)
    }
    await until(() => new Set(client.seen).isSupersetOf(expected))
    assert.ok(!client.types.includes('overflow'))
  })

  it('tells a rename as the old name gone and the new one there', async () => {
    const { directory, client } = await watch('rename')
    writeFileSync(join(directory, 'old'), '')
    mkdirSync(join(directory, 'dir'))
    await client.until('addDir dir')
    renameSync(join(directory, 'old'), join(directory, 'new'))
    assert.ok((await client.until('add new')).includes('unlink old'))
    renameSync(join(directory, 'dir'), join(directory, 'moved'))
    assert.ok((await client.until('addDir moved')).includes('unlinkDir dir'))
    writeFileSync(join(directory, 'moved/file'), '')
    await client.until('add moved/file')
  })

  it('leaves out what the globs say', async () => {
    const ignored = ['*.log', 'node_modules', 'src/**/*.tmp', '{a,b}?', `${sandbox.workdir}/globs/abs`]
    const { directory, watcher, client } = await watch('globs', { ignored })
    assert.deepEqual(watcher.ignored, ignored)
    for (const path of ['node_modules/x', 'src/deep', 'lib'])
      mkdirSync(join(directory, path), { recursive: true })
    await client.until('addDir src/deep')
    const out = [
      'x.log',
      'node_modules/f',
      'node_modules/x/f',
      'src/a.tmp',
      'src/deep/b.tmp',
      'a1',
      'lib/b2',
      'abs',
    ]
    for (const path of out) writeFileSync(join(directory, path), '')
    for (const path of ['lib/c.tmp', 'a12', 'x.logs', 'lib/abs', 'end'])
      writeFileSync(join(directory, path), '')
    const seen = new Set(await client.until('add end'))
    const expected = ['addDir src', 'addDir src/deep', 'addDir lib', 'add lib/c.tmp', 'add a12', 'add x.logs']
    assert.deepEqual(seen, new Set([...expected, 'add lib/abs', 'add end']))
  })

  it('takes a path below the working directory, also of a file', async () => {
    const file = join(fresh('relative'), 'file')
    writeFileSync(file, '')
    const watcher = await create({ path: 'relative/file' })
    assert.equal(watcher.path, file)
    assert.equal((await create({ path: './relative/' })).path, join(sandbox.workdir, 'relative'))
    const client = await follow(watcher)
    appendFileSync(file, 'x')
    await until(() => client.changes.some(({ event, path }) => event === 'change' && path === file))
  })

  it('follows a file that is replaced by a rename, as programs save it, until it is removed', async () => {
    const file = join(fresh('replaced'), 'file')
    writeFileSync(file, 'first')
    const watcher = await create({ path: file, includeContent: true })
    const client = await follow(watcher)
    for (const content of ['second', 'third']) {
      assert.equal(
        (await api.call('PUT', `/v1/sandboxes/${sandbox.id}/files?path=${file}`, content)).status,
        200,
      )
      await until(() =>
        client.changes.some((change) => change.event === 'change' && change.content === content),
      )
    }
    rmSync(file)
    assert.equal(await client.closed, 4404)
    assert.deepEqual(client.changes.at(-1), { type: 'change', event: 'unlink', path: file })
  })

  it('holds what happens before the first client comes, and only that', async () => {
    const directory = fresh('held')
    const watcher = await create({ path: directory })
    writeFileSync(join(directory, 'early'), '')
    const first = await follow(watcher)
    await first.until('add early')
    const second = await follow(watcher)
    writeFileSync(join(directory, 'late'), '')
    await first.until('add late')
    assert.deepEqual(await second.until('add late'), ['add late'])
  })

  it('gives every client all of it, and a slow one an overflow', async () => {
    const directory = fresh('clients')
    const watcher = await create({ path: directory, includeContent: true })
    const [slow, ...others] = await Promise.all([1, 2, 3].map(() => follow(watcher)))
    slow!.socket.pause()
    const content = 'x'.repeat(1_000_000)
    for (let n = 0; n < 48; n++) {
      writeFileSync(join(directory, 'part'), content)
      renameSync(join(directory, 'part'), join(directory, `${n}`))
      for (const client of others) {
        await client.until(`add ${n}`)
        const change = client.changes.find(({ path }) => path.endsWith(`/${n}`))
        assert.equal(change?.content, content)
      }
    }
    for (const client of others) assert.ok(!client.types.includes('overflow'))
    slow!.socket.resume()
    await until(() => slow!.types.includes('overflow'))
    assert.ok(slow!.seen.length < others[0]!.seen.length)
    writeFileSync(join(directory, 'after'), '')
    await slow!.until('add after')
  })

  it('is listed until it is destroyed, which its clients hear', async () => {
    const { watcher, client } = await watch('listed', { includeContent: true, encoding: 'base64' })
    const other = await follow(watcher)
    const { watchers } = (await (await api.call('GET', routeOf())).json()) as { watchers: WatcherInfo[] }
    assert.deepEqual(
      watchers.find(({ id }) => id === watcher.id),
      watcher,
    )
    assert.deepEqual(await get(watcher.id), watcher)
    assert.deepEqual([watcher.status, watcher.reason, watcher.encoding], ['active', null, 'base64'])
    assert.equal((await destroy(watcher.id)).status, 204)
    for (const each of [client, other]) {
      assert.equal(await each.closed, 1000)
      assert.deepEqual(each.types, ['start', 'exit'])
    }
    assert.equal((await errorOf(await destroy(watcher.id))).code, 'watcher_not_found')
    assert.equal((await errorOf(await api.call('GET', routeOf(`/${watcher.id}`)))).code, 'watcher_not_found')
  })

  it('stops with a reason when what it watches goes away', async () => {
    const { directory, watcher, client } = await watch('doomed')
    writeFileSync(join(directory, 'file'), '')
    await client.until('add file')
    rmSync(directory, { recursive: true })
    assert.equal(await client.closed, 4404)
    assert.ok(client.seen.includes('unlink file'))
    const last = client.messages.at(-1)
    assert.equal(last?.type === 'error' && last.error.code, 'file_not_found')
    const { status, reason } = await get(watcher.id)
    assert.equal(status, 'stopped')
    assert.match(reason ?? '', /doomed is gone/)
    const late = await follow(watcher)
    await late.closed
    assert.deepEqual(late.types, ['start', 'error'])
    assert.equal((await destroy(watcher.id)).status, 204)
  })

  it('is refused for a path that is not there and for globs that explode', async () => {
    const missing = await errorOf(await api.call('POST', routeOf(), { path: 'missing' }))
    assert.deepEqual([missing.status, missing.code], [404, 'file_not_found'])
    for (const ignored of [['{a,b}'.repeat(20)], ['\0'], [''], Array(101).fill('x')]) {
      const refused = await errorOf(await api.call('POST', routeOf(), { path: '.', ignored }))
      assert.deepEqual([refused.status, refused.code], [400, 'bad_request'], JSON.stringify(ignored[0]))
    }
    const none = `/${newId('watcher')}`
    for (const method of ['GET', 'DELETE'])
      assert.equal((await errorOf(await api.call(method, routeOf(none)))).code, 'watcher_not_found')
    assert.equal((await api.call('GET', routeOf(`${none}/events`))).status, 400)
  })

  it('is limited in number, and ends with its sandbox', async () => {
    const other = await api.createSandbox()
    const made = await Promise.all(
      Array.from({ length: LIMITS.watchers + 2 }, () => api.call('POST', routeOf('', other), { path: '.' })),
    )
    const refused = made.filter(({ status }) => status !== 201)
    const codes = await Promise.all(refused.map(async (response) => (await errorOf(response)).code))
    assert.deepEqual(codes, ['limit_exceeded', 'limit_exceeded'])
    const watcher = (await made.find(({ status }) => status === 201)!.json()) as WatcherInfo
    const client = await follow(watcher)
    await api.call('DELETE', `/v1/sandboxes/${other.id}`)
    assert.equal(await client.closed, 1000)
    assert.equal(client.types.at(-1), 'exit')
    assert.equal(
      ((await (await api.call('GET', routeOf('', other))).json()) as { watchers: [] }).watchers.length,
      0,
    )
  })
})
