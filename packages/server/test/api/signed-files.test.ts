import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import type { Sandbox, SignedUrl } from '@islet/contract'
import { loadConfig, startServer } from '../../src/app.ts'
import { createLog } from '../../src/log.ts'
import { errorOf, startTestApi, TEST_KEY, type TestApi, until } from '../support/server.ts'

describe('signed URLs', () => {
  let api: TestApi
  let made: Sandbox
  before(async () => {
    api = await startTestApi()
    made = await api.createSandbox()
    writeFileSync(at('ten'), '0123456789')
  })
  after(() => api[Symbol.asyncDispose]())

  const at = (name: string) => join(made.workdir, name)
  const sign = async (path: string, method = 'GET', expiresIn?: number | string): Promise<SignedUrl> => {
    const response = await api.call('POST', `/v1/sandboxes/${made.id}/files/sign`, {
      path,
      method,
      expiresIn,
    })
    assert.equal(response.status, 201)
    return (await response.json()) as SignedUrl
  }
  const granted = ({ url }: SignedUrl) => new URL(url).searchParams.get('grant')!

  it('download a file without a key, whole, in part, or only its headers', async () => {
    const { url, method, expiresAt } = await sign('ten', 'GET', '10m')
    assert.ok(url.startsWith(`${api.url}/v1/signed-files?grant=`), 'at the address that was asked')
    assert.equal(method, 'GET')
    const minutes = (Date.parse(expiresAt) - Date.now()) / 60_000
    assert.ok(minutes > 9 && minutes <= 10, expiresAt)
    const whole = await fetch(url)
    assert.equal(whole.status, 200)
    assert.equal(whole.headers.get('content-disposition'), 'attachment; filename="ten"')
    assert.equal(whole.headers.get('content-type'), 'application/octet-stream')
    assert.equal(whole.headers.get('x-content-type-options'), 'nosniff')
    assert.equal(await whole.text(), '0123456789')
    const part = await fetch(url, { headers: { range: 'bytes=3-5' } })
    assert.deepEqual(
      [part.status, part.headers.get('content-range'), await part.text()],
      [206, 'bytes 3-5/10', '345'],
    )
    const head = await fetch(url, { method: 'HEAD' })
    assert.deepEqual([head.status, head.headers.get('content-length')], [200, '10'])
    assert.equal((await fetch(url, { headers: { range: 'bytes=10-' } })).status, 416)
  })

  it('upload a file of any size without a key', async () => {
    const { url } = await sign('up/loaded', 'PUT')
    const response = await fetch(url, { method: 'PUT', body: 'content' })
    assert.equal(response.status, 200)
    const entry = (await response.json()) as { path: string; sizeBytes: number }
    assert.deepEqual([entry.path, entry.sizeBytes], [at('up/loaded'), 7])
    assert.equal(readFileSync(at('up/loaded'), 'utf8'), 'content')
    const bytes = 64 * 1024 * 1024
    const chunk = new Uint8Array(bytes / 64)
    const body = Readable.toWeb(Readable.from(Array.from({ length: 64 }, () => chunk)))
    const large = await fetch(url, { method: 'PUT', body, duplex: 'half' } as unknown as RequestInit)
    assert.equal(large.status, 200)
    assert.equal(statSync(at('up/loaded')).size, bytes)
    truncateSync(at('up/loaded'), 0)
  })

  it('have a file name that a browser can take, whatever the file is called', async () => {
    const names: [string, string][] = [
      ['plain name-1.txt', 'attachment; filename="plain name-1.txt"'],
      [`quo"te\r\nX: y`, `attachment; filename="quo_te__X_ y"; filename*=UTF-8''quo%22te%0D%0AX%3A%20y`],
      ["ü'(*)", `attachment; filename="_____"; filename*=UTF-8''%C3%BC%27%28%2A%29`],
    ]
    for (const [name, expected] of names) {
      writeFileSync(at(name), name)
      const response = await fetch((await sign(name)).url)
      assert.equal(response.headers.get('content-disposition'), expected)
      assert.equal(await response.text(), name)
    }
  })

  it('are for one method, one file and one sandbox', async () => {
    const download = await sign('ten')
    const upload = await sign('new', 'PUT')
    const put = await fetch(download.url, { method: 'PUT', body: 'x' })
    assert.equal((await errorOf(put)).code, 'forbidden')
    assert.equal((await errorOf(await fetch(upload.url))).code, 'forbidden')
    assert.ok(!existsSync(at('new')))
    for (const more of ['&path=/etc/passwd', `&grant=${granted(download)}`, '&id=x']) {
      assert.equal((await fetch(download.url + more)).status, 400, more)
    }
    const [header, payload, signature] = granted(download).split('.') as [string, string, string]
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const forged = Buffer.from(JSON.stringify({ ...claims, path: '/etc/passwd' })).toString('base64url')
    const unsigned = Buffer.from('{"alg":"none"}').toString('base64url')
    for (const grant of [`${header}.${forged}.${signature}`, `${unsigned}.${forged}.`, 'x', '', TEST_KEY]) {
      const error = await errorOf(await fetch(`${api.url}/v1/signed-files?grant=${grant}`))
      assert.deepEqual([error.code, error.status], ['unauthorized', 401], grant)
    }
    assert.equal(readFileSync(at('ten'), 'utf8'), '0123456789')
  })

  it('are no tokens, and tokens are no signed URLs', async () => {
    const { token } = (await (await api.call('POST', `/v1/sandboxes/${made.id}/token`, {})).json()) as {
      token: string
    }
    const asGrant = await fetch(`${api.url}/v1/signed-files?grant=${token}`)
    assert.equal((await errorOf(asGrant)).code, 'unauthorized')
    const headers = { authorization: `Bearer ${granted(await sign('ten'))}` }
    const asToken = await api.call('GET', `/v1/sandboxes/${made.id}/files?path=ten`, undefined, { headers })
    assert.equal((await errorOf(asToken)).code, 'unauthorized')
  })

  it('can be made with the token of the sandbox, and only for it', async () => {
    const { token } = (await (await api.call('POST', `/v1/sandboxes/${made.id}/token`, {})).json()) as {
      token: string
    }
    const headers = { authorization: `Bearer ${token}` }
    const body = { path: 'ten', method: 'GET' }
    const own = await api.call('POST', `/v1/sandboxes/${made.id}/files/sign`, body, { headers })
    assert.equal((await fetch(((await own.json()) as SignedUrl).url)).status, 200)
    const other = await api.createSandbox()
    const foreign = await api.call('POST', `/v1/sandboxes/${other.id}/files/sign`, body, { headers })
    assert.equal((await errorOf(foreign)).code, 'forbidden')
  })

  it('expire', async () => {
    const { url } = await sign('ten', 'GET', 1000)
    await until(async () => (await fetch(url)).status === 401)
    const error = await errorOf(await fetch(url))
    assert.equal(error.code, 'token_expired')
    assert.match(error.hint ?? '', /files\/sign/)
    for (const expiresIn of [999, '8d', 'soon', -1]) {
      const body = { path: 'ten', method: 'GET', expiresIn }
      const response = await api.call('POST', `/v1/sandboxes/${made.id}/files/sign`, body)
      assert.equal((await errorOf(response)).code, 'bad_request')
    }
  })

  it('of what is not a file, or not there, say so', async () => {
    mkdirSync(at('folder'))
    assert.equal((await errorOf(await fetch((await sign('none')).url))).code, 'file_not_found')
    assert.equal((await errorOf(await fetch((await sign('folder')).url))).code, 'is_a_directory')
    const unknown = `/v1/sandboxes/sbx-${'0'.repeat(20)}/files/sign`
    const response = await api.call('POST', unknown, { path: 'x', method: 'GET' })
    assert.equal((await errorOf(response)).code, 'sandbox_not_found')
  })

  it('do not show in the log', async () => {
    const signed = await sign('ten')
    await fetch(signed.url)
    await fetch(`${api.url}/v1/signed-files?grant=${'g'.repeat(40)}`)
    const lines = api.logged.filter((line) => line.includes('/v1/signed-files'))
    assert.ok(lines.length >= 2)
    const signature = granted(signed).split('.')[2]!
    assert.ok(!api.logged.some((line) => line.includes(signature) || line.includes('g'.repeat(40))))
  })

  it('begin with the public URL where there is one', async () => {
    const url = 'https://islet.example.com/behind/a/proxy'
    const overrides = {
      engine: 'process',
      dataDir: join(api.dataDir, 'other'),
      port: 0,
      publicUrl: `${url}/`,
    }
    const config = loadConfig({ env: { ISLET_API_KEY: TEST_KEY }, overrides })
    const server = await startServer(config, { ephemeral: true, log: createLog({ level: 'silent' }) })
    try {
      const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
      const post = (path: string, body: unknown) =>
        fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) }).then((r) =>
          r.json(),
        )
      const { id } = (await post('/v1/sandboxes', {})) as Sandbox
      const signed = (await post(`/v1/sandboxes/${id}/files/sign`, { path: 'x', method: 'PUT' })) as SignedUrl
      assert.ok(signed.url.startsWith(`${url}/v1/signed-files?grant=`), signed.url)
      const { search } = new URL(signed.url)
      for (const [host, status] of [
        ['islet.example.com', 200],
        ['evil.example.com', 403],
      ] as const) {
        const options = { method: 'PUT', headers: { host } }
        const sent = request(`${server.url}/v1/signed-files${search}`, options).end('through a proxy')
        const [response] = (await once(sent, 'response')) as [IncomingMessage]
        response.resume()
        assert.equal(response.statusCode, status, host)
      }
    } finally {
      await server.close({ all: true })
    }
  })
})
