import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { Sandbox } from '@islet/contract'
import { errorOf, startTestApi, type TestApi } from '../support/server.ts'

describe('archives', () => {
  let api: TestApi
  let sandbox: Sandbox
  let archive: string
  let tar: Buffer
  const at = (...parts: string[]) => join(sandbox.workdir, ...parts)
  before(async () => {
    api = await startTestApi()
    sandbox = await api.createSandbox()
    archive = `/v1/sandboxes/${sandbox.id}/files/archive`
    mkdirSync(at('tree', 'sub', 'empty'), { recursive: true })
    writeFileSync(at('tree', 'sub', 'bytes'), randomBytes(300_000))
    writeFileSync(at('tree', 'tool'), '#!/bin/sh\n', { mode: 0o755 })
    symlinkSync('sub/bytes', at('tree', 'link'))
    tar = execFileSync('tar', ['-C', at('tree'), '-c', '.'])
  })
  after(() => api[Symbol.asyncDispose]())

  const same = (name: string) => execFileSync('diff', ['-r', '--no-dereference', at('tree'), at(name)])
  const unpack = (name: string, bytes: Buffer) => {
    mkdirSync(at(name))
    execFileSync('tar', ['-C', at(name), '-x'], { input: bytes })
    same(name)
  }

  it('come compressed unless asked otherwise', async () => {
    const packed = await api.call('GET', `${archive}?path=tree`)
    assert.equal(packed.headers.get('content-type'), 'application/gzip')
    assert.equal(packed.headers.get('content-disposition'), 'attachment; filename="tree.tar.gz"')
    unpack('of-packed', gunzipSync(Buffer.from(await packed.arrayBuffer())))
    const plain = await api.call('GET', `${archive}?path=tree&gzip=false`)
    assert.equal(plain.headers.get('content-type'), 'application/x-tar')
    unpack('of-plain', Buffer.from(await plain.arrayBuffer()))
  })

  it('are described by HEAD', async () => {
    const response = await api.call('HEAD', `${archive}?path=tree`)
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'application/gzip')
    assert.equal((await api.call('HEAD', `${archive}?path=none`)).status, 404)
  })

  it('fail like any call when there is nothing to pack', async () => {
    const { status, code } = await errorOf(await api.call('GET', `${archive}?path=none`))
    assert.deepEqual([status, code], [404, 'file_not_found'])
  })

  it('break the connection when packing fails half way', async () => {
    for (const gzip of [true, false]) {
      const other = await api.createSandbox()
      writeFileSync(join(other.workdir, 'large'), randomBytes(48 * 1024 * 1024))
      const path = `/v1/sandboxes/${other.id}/files/archive?path=.&gzip=${gzip}`
      const reader = (await api.call('GET', path)).body!.getReader()
      await reader.read()
      await api.call('DELETE', `/v1/sandboxes/${other.id}`)
      await assert.rejects(async () => {
        while (!(await reader.read()).done);
      })
    }
  })

  it('are unpacked whether they are compressed or not', async () => {
    for (const [path, body] of [
      ['plain', tar],
      ['packed/deeper', gzipSync(tar)],
    ] as const) {
      const response = await api.call('PUT', `${archive}?path=${path}`, body)
      assert.equal(response.status, 200)
      assert.ok(((await response.json()) as { count: number }).count >= 5)
      same(path)
    }
  })

  it('of nothing are none, and one byte is not one', async () => {
    const empty = await api.call('PUT', `${archive}?path=nothing`, new Uint8Array())
    assert.deepEqual([empty.status, await empty.json()], [200, { count: 0 }])
    const one = await errorOf(await api.call('PUT', `${archive}?path=one`, new Uint8Array([0x1f])))
    assert.deepEqual([one.status, one.code], [400, 'bad_request'])
  })

  const broken = () => gzipSync(tar).fill(0xff, 100, 200)
  const cut = () => gzipSync(tar).subarray(0, 100_000)

  it('are refused when the compression is broken or cut off', async () => {
    for (const body of [broken(), cut(), Buffer.from([0x1f, 0x8b])]) {
      const { status, code } = await errorOf(await api.call('PUT', `${archive}?path=broken`, body))
      assert.deepEqual([status, code], [400, 'bad_request'])
    }
  })

  it('leave no half of a file when they are refused', async () => {
    await api.call('PUT', `${archive}?path=half`, cut())
    assert.ok(!existsSync(at('half', 'sub', 'bytes')), 'sub/bytes is there')
  })

  it('do not touch anything outside of their directory', async () => {
    const evil = execFileSync('tar', ['-C', at('tree', 'sub'), '-P', '-c', '../tool'])
    const { status } = await errorOf(await api.call('PUT', `${archive}?path=inside/deep`, evil))
    assert.equal(status, 400)
    assert.deepEqual(readdirSync(at('inside')), ['deep'])
  })
})
