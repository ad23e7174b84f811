import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { BatchOperation, BatchResult, Sandbox } from '@islet/contract'
import { errorOf, startTestApi, type TestApi } from '../support/server.ts'

describe('a batch', () => {
  let api: TestApi
  let made: Sandbox
  before(async () => {
    api = await startTestApi()
    made = await api.createSandbox()
  })
  after(() => api[Symbol.asyncDispose]())

  const at = (name: string) => join(made.workdir, name)
  const send = (files: unknown) => api.call('POST', `/v1/sandboxes/${made.id}/files/batch`, { files })
  const batch = async (files: BatchOperation[]): Promise<BatchResult[]> => {
    const response = await send(files)
    assert.equal(response.status, 200)
    return ((await response.json()) as { results: BatchResult[] }).results
  }
  const write = (path: string, content = path): BatchOperation => ({ path, operation: 'write', content })

  it('writes and deletes, each with its own result, in the order of the paths', async () => {
    mkdirSync(at('old/sub'), { recursive: true })
    writeFileSync(at('old/sub/file'), '')
    mkdirSync(at('directory'))
    const results = await batch([
      write('z/deep/file'),
      { path: 'missing', operation: 'delete' },
      { path: 'old', operation: 'delete' },
      write('directory'),
      {
        path: 'bytes',
        operation: 'write',
        content: Buffer.from([0, 255]).toString('base64'),
        encoding: 'base64',
        mode: '0751',
      },
    ])
    assert.deepEqual(
      results.map(({ path, success, code }) => [path, success, code]),
      [
        ['bytes', true, undefined],
        ['directory', false, 'is_a_directory'],
        ['missing', false, 'file_not_found'],
        ['old', true, undefined],
        ['z/deep/file', true, undefined],
      ],
    )
    assert.ok(results[2]!.error?.includes(at('missing')))
    assert.equal(results[0]!.file?.sizeBytes, 2)
    assert.equal(results[4]!.file?.path, at('z/deep/file'))
    assert.deepEqual(readFileSync(at('bytes')), Buffer.from([0, 255]))
    assert.equal(statSync(at('bytes')).mode & 0o777, 0o751)
    assert.ok(!existsSync(at('old')))
  })

  it('counts the last operation on a path, however the path is written', async () => {
    const results = await batch([
      write('twice', 'first'),
      { path: './x/../twice', operation: 'delete' },
      write(at('twice'), 'final'),
      write('gone'),
      { path: 'gone', operation: 'delete' },
    ])
    assert.deepEqual(
      results.map(({ path, success }) => [path, success]),
      [
        ['gone', false],
        [at('twice'), true],
      ],
    )
    assert.equal(readFileSync(at('twice'), 'utf8'), 'final')
  })

  it('of nothing has no results', async () => assert.deepEqual(await batch([]), []))

  it('does not mix with another one on the same files', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `shared/${index}`)
    const writers = Array.from({ length: 8 }, (_, writer) => {
      const files = names.map((name) => write(name, `writer ${writer}`))
      return batch(writer % 2 ? files.reverse() : files)
    })
    await Promise.all(writers)
    const contents = new Set(names.map((name) => readFileSync(at(name), 'utf8')))
    assert.equal(contents.size, 1)
  })

  it('that is not valid is refused whole, with the place that is wrong', async () => {
    const cases: [unknown, RegExp][] = [
      [[write('ok'), { path: 'x', operation: 'write' }], /^files\[1\]\.content: a write needs content/],
      [[write('ok'), { path: '', operation: 'delete' }], /^files\[1\]\.path/],
      [[{ ...write('x', '***'), encoding: 'base64' }], /^files\[0\]\.content/],
      [[{ path: 'x', operation: 'move' }], /^files\[0\]\.operation/],
      [Array.from({ length: 1001 }, () => write('x')), /^files/],
      [[write('x', 'x'.repeat(9_000_000))], /^files: files hold at most/],
    ]
    for (const [files, message] of cases) {
      const error = await errorOf(await send(files))
      assert.equal(error.status, 400)
      assert.match(error.message, message)
    }
    const error = await errorOf(await send([write('a\0')]))
    assert.equal(error.code, 'invalid_path')
    assert.ok(!existsSync(at('ok')))
  })
})
