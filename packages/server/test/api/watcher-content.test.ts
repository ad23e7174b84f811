import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type CreateWatcher, LIMITS, type Sandbox, type WatcherInfo } from '@islet/contract'
import { startTestApi, type TestApi, until } from '../support/server.ts'
import { WatchClient } from '../support/watch-client.ts'

describe('content in the events of a watcher', () => {
  let api: TestApi
  let sandbox: Sandbox
  before(async () => {
    api = await startTestApi()
    sandbox = await api.createSandbox()
  })
  after(() => api[Symbol.asyncDispose]())

  async function watch(name: string, encoding?: CreateWatcher['encoding']) {
    const directory = join(sandbox.workdir, name)
    mkdirSync(directory)
    const input = { path: directory, includeContent: true, encoding }
    const response = await api.call('POST', `/v1/sandboxes/${sandbox.id}/watchers`, input)
    const { channel } = (await response.json()) as WatcherInfo
    const client = await WatchClient.open(api.url.replace('http', 'ws') + channel, directory)
    /** Written elsewhere and moved in: one event, whole content. */
    const put = (file: string, content: string | Buffer) => {
      writeFileSync(join(sandbox.workdir, 'part'), content)
      renameSync(join(sandbox.workdir, 'part'), join(directory, file))
    }
    const of = async (file: string) => {
      await client.until(`add ${file}`)
      return client.changes.findLast(({ path }) => path === join(directory, file))!
    }
    return { directory, client, put, of }
  }

  it('is the text of a file, and changes with it', async () => {
    const { put, of, client, directory } = await watch('raw')
    put('text', 'grüße 💡\n')
    assert.equal((await of('text')).content, 'grüße 💡\n')
    put('empty', '')
    assert.equal((await of('empty')).content, '')
    put('binary', Buffer.from([0xff, 0x00, 0x41]))
    assert.equal((await of('binary')).content, '\ufffd\u0000A')
    writeFileSync(join(directory, 'text'), 'second')
    await until(() => client.changes.some(({ event, content }) => event === 'change' && content === 'second'))
    mkdirSync(join(directory, 'dir'))
    await client.until('addDir dir')
    const { content, contentOmitted } = client.changes.at(-1)!
    assert.deepEqual([content, contentOmitted], [undefined, undefined])
  })

  it('is base64 for bytes of any kind', async () => {
    const { put, of } = await watch('base64', 'base64')
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n))
    put('bytes', bytes)
    assert.equal((await of('bytes')).content, bytes.toString('base64'))
  })

  it('is left out, with the reason, when there is too much of it', async () => {
    const { put, of } = await watch('large')
    put('fits', Buffer.alloc(LIMITS.watchContentBytes, 'x'))
    assert.equal((await of('fits')).content?.length, LIMITS.watchContentBytes)
    put('large', Buffer.alloc(LIMITS.watchContentBytes + 1))
    const { content, contentOmitted } = await of('large')
    assert.deepEqual([content, contentOmitted], [undefined, 'too_large'])
  })

  it('is never that of what a symlink points at, nor waited for from a pipe', async () => {
    const { directory, of } = await watch('links')
    symlinkSync('/etc/passwd', join(directory, 'out'))
    symlinkSync('/', join(directory, 'root'))
    symlinkSync('loop', join(directory, 'loop'))
    execFileSync('mkfifo', [join(directory, 'fifo')])
    for (const name of ['out', 'root', 'loop', 'fifo']) {
      const { event, content, contentOmitted } = await of(name)
      assert.deepEqual([event, content, contentOmitted], ['add', undefined, 'unreadable'], name)
    }
  })

  it('leaves the order of events as it was', async () => {
    const { client, directory } = await watch('order')
    const expected: string[] = []
    for (let n = 0; n < 40; n++) {
      writeFileSync(join(sandbox.workdir, 'part'), Buffer.alloc(n % 2 ? 1 : 900_000, 'x'))
      renameSync(join(sandbox.workdir, 'part'), join(directory, `${n}`))
      if (n % 4 === 0) mkdirSync(join(directory, `d${n}`))
      expected.push(`add ${n}`, ...(n % 4 === 0 ? [`addDir d${n}`] : []))
    }
    assert.deepEqual(await client.until('add 39'), expected)
  })
})
