import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { imageList, imageProgress, runtimeList } from '@islet/contract'
import { type Registry, startRegistry } from '../../src/image/oci/registry.scratch.ts'
import { type TarEntry, tarOf } from '../../src/image/scratch.ts'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'

const ROOT: TarEntry[] = [
  { name: './', type: '5' },
  { name: './etc/', type: '5' },
  { name: './etc/passwd', content: 'root:x:0:0::/root:/bin/sh\n', mode: 0o644 },
  { name: './bin/tool', content: 'tool' },
]
const LARGE: TarEntry = { name: './large', content: 'x'.repeat(3_000_000) }

describe('images', () => {
  let api: TestApi
  let registry: Registry
  let scratch: string
  const at = (name: string) => join(scratch, name)
  before(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'islet-api-images-'))
    registry = await startRegistry(scratch)
    await registry.push('small:1', [ROOT])
    await registry.push('random:1', [[...ROOT, { ...LARGE, content: noise(LARGE.content!.length) }]])
    api = await startTestApi({ importDirs: scratch })
  })
  after(async () => {
    await api[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
    rmSync(scratch, { recursive: true })
  })

  const pull = (name: string, init?: RequestInit, more = {}) =>
    api.call(
      'POST',
      '/v1/images/pull',
      { reference: `${registry.address}/${name}`, insecure: true, ...more },
      init,
    )
  const importing = (kind: string, path: string, name: string, from = api) =>
    from.call('POST', '/v1/images/import', { kind, path, name })
  const linesOf = async (response: Response) =>
    (await response.text())
      .trimEnd()
      .split('\n')
      .map((line) => imageProgress.parse(JSON.parse(line)))
  const imagesOf = async (from = api) =>
    imageList.parse(await (await from.call('GET', '/v1/images')).json()).images

  it('and runtimes are listed', async () => {
    const { runtimes } = runtimeList.parse(await (await api.call('GET', '/v1/runtimes')).json())
    const host = runtimes.find(({ name }) => name === 'host')
    assert.ok(host?.ready && host.image?.startsWith('img-'))
    assert.deepEqual(
      runtimes.filter(({ ready, image }) => ready !== (image !== null)),
      [],
    )
    assert.ok((await imagesOf()).some(({ name }) => name === host.image))
  })

  it('of packages need an engine with a wall', async () => {
    for (const field of ['dependencies', 'packages', 'pip']) {
      const error = await errorOf(await api.call('POST', '/v1/sandboxes', { [field]: ['jq'] }))
      assert.deepEqual([error.status, error.code], [501, 'not_supported'])
      assert.match(error.message, new RegExp(`^${field}: `))
    }
    const none = await api.call('POST', '/v1/sandboxes', { dependencies: [], packages: [], pip: [] })
    assert.equal(none.status, 201)
  })

  it('are built only for runtimes that can be', async () => {
    const error = await errorOf(await api.call('POST', '/v1/images/build', { runtime: 'constructor' }))
    assert.deepEqual([error.status, error.code], [400, 'bad_request'])
    assert.match(error.hint!, /base, node:24.*claude/)
    for (const wrong of [{ insecure: true }, { name: 'host' }]) {
      const refused = await errorOf(
        await api.call('POST', '/v1/images/pull', { reference: 'bun:1', ...wrong }),
      )
      assert.deepEqual([refused.status, refused.code], [400, 'bad_request'])
    }
    const walls = await errorOf(await api.call('POST', '/v1/images/build', { runtime: 'bun:1' }))
    assert.equal(walls.code, 'not_supported')
  })

  it('are pulled with a line for every step and the image at the end', async () => {
    const response = await pull('small:1', {}, { name: 'mine' })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'application/x-ndjson')
    const lines = await linesOf(response)
    const last = lines.pop()!
    assert.ok(lines.length > 0 && lines.every(({ type }) => type === 'progress'))
    assert.deepEqual(last.type === 'done' && last.image.runtimes, ['mine'])
  })

  it('fail as an HTTP error before the first line, and as the last line after it', async () => {
    const missing = await errorOf(await importing('tar', at('none.tar'), 'none'))
    assert.deepEqual([missing.status, missing.code], [404, 'file_not_found'])
    writeFileSync(at('broken.tar'), 'x'.repeat(100_000))
    const lines = await linesOf(await importing('tar', at('broken.tar'), 'broken'))
    const last = lines.at(-1)!
    assert.ok(lines.length > 1)
    assert.equal(last.type === 'error' && last.error.code, 'bad_request')
  })

  it('are no longer worked on when the client goes away, and leave nothing', async () => {
    const before = readdirSync(join(api.dataDir, 'images')).sort()
    const controller = new AbortController()
    registry.door = 'stall'
    const response = await pull('random:1', { signal: controller.signal })
    await response.body!.getReader().read()
    await until(() => registry.blobs.length > 0)
    assert.notDeepEqual(readdirSync(join(api.dataDir, 'images')).sort(), before)
    controller.abort()
    await until(() => String(readdirSync(join(api.dataDir, 'images')).sort()) === String(before))
    registry.door = 'open'
    assert.equal((await linesOf(await pull('random:1'))).at(-1)?.type, 'done')
  })

  it('do not fit on a full disk, say so and leave nothing', async () => {
    mkdirSync(at('disk'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'islet-test', at('disk')])
    try {
      await using other = await startTestApi({ imageDir: join(at('disk'), 'images'), importDirs: scratch })
      writeFileSync(at('large.tar'), tarOf([...ROOT, LARGE]))
      const last = (await linesOf(await importing('tar', at('large.tar'), 'large', other))).at(-1)!
      assert.equal(last.type === 'error' && last.error.code, 'server_disk_full')
      writeFileSync(at('small.tar'), tarOf(ROOT))
      const next = (await linesOf(await importing('tar', at('small.tar'), 'small', other))).at(-1)!
      assert.equal(next.type, 'done')
    } finally {
      execFileSync('umount', [at('disk')])
    }
  })

  it('are made from a tar that is uploaded', async () => {
    const upload = (name: string, tar: Uint8Array) => api.call('POST', `/v1/images/upload?name=${name}`, tar)
    const done = (await linesOf(await upload('uploaded', tarOf(ROOT)))).at(-1)!
    assert.ok(done.type === 'done')
    assert.deepEqual(done.image.runtimes, ['uploaded'])
    assert.deepEqual(done.image.source, { kind: 'tar', path: 'uploaded' })
    const broken = (await linesOf(await upload('broken', Buffer.alloc(100_000, 'x')))).at(-1)!
    assert.equal(broken.type === 'error' && broken.error.code, 'bad_request')
    const left = readdirSync(join(api.dataDir, 'images')).filter((name) => name.startsWith('.tmp-'))
    assert.deepEqual(left, [])
  })

  it('read only paths of the machine that the settings allow, also through links', async () => {
    mkdirSync(at('secret/etc'), { recursive: true })
    mkdirSync(at('allowed/within'), { recursive: true })
    writeFileSync(at('secret.tar'), tarOf(ROOT))
    symlinkSync(at('secret'), at('allowed/link'))
    symlinkSync(at('secret.tar'), at('allowed/link.tar'))
    symlinkSync(at('allowed/within'), at('allowed/own'))
    await using other = await startTestApi({ importDirs: at('allowed') })
    const codeOf = async (kind: string, path: string, from: TestApi) =>
      (await errorOf(await importing(kind, path, 'secret', from))).code
    for (const path of ['secret', 'allowed/link', 'allowed/../secret', 'allowed-not', '/etc'])
      assert.equal(
        await codeOf('directory', path.startsWith('/') ? path : at(path), other),
        'forbidden',
        path,
      )
    for (const path of ['secret.tar', 'allowed/link.tar'])
      assert.equal(await codeOf('tar', at(path), other), 'forbidden')
    for (const path of ['allowed', 'allowed/within', 'allowed/own'])
      assert.equal(
        (await linesOf(await importing('directory', at(path), 'fine', other))).at(-1)?.type,
        'done',
        path,
      )
    await using none = await startTestApi()
    assert.equal(await codeOf('directory', at('allowed'), none), 'forbidden')
  })

  it('are imported, collected and removed by names that need escaping', async () => {
    const name = 'docker.io/library/alpine:3@x'
    mkdirSync(at('root/etc'), { recursive: true })
    writeFileSync(at('root/etc/passwd'), 'root:x:0:0::/root:/bin/sh\n')
    const done = (await linesOf(await importing('directory', at('root'), name))).at(-1)!
    assert.ok(done.type === 'done')
    assert.deepEqual(done.image.source, { kind: 'directory', path: at('root') })
    assert.ok(existsSync(join(api.dataDir, 'images', done.image.name)))
    assert.equal((await api.call('DELETE', `/v1/images/${encodeURIComponent(name)}`)).status, 204)
    assert.ok(!(await imagesOf()).some((image) => image.name === done.image.name))
    assert.equal((await api.call('DELETE', `/v1/images/${encodeURIComponent('../x')}`)).status, 404)
    const collected = await (await api.call('POST', '/v1/images/collect')).json()
    assert.deepEqual(collected, { removed: [], freedBytes: 0 })
  })
})

/** Text that does not compress to nothing. */
function noise(length: number): string {
  let seed = 1
  return Array.from({ length }, () => {
    seed = (seed * 48_271) % 2_147_483_647
    return String.fromCharCode(33 + (seed % 90))
  }).join('')
}
