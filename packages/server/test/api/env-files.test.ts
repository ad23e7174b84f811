import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Sandbox } from '@islet/contract'
import { errorOf, startTestApi, type TestApi } from '../support/server.ts'

describe('env files', () => {
  let api: TestApi
  let made: Sandbox
  before(async () => {
    api = await startTestApi()
    made = await api.createSandbox()
  })
  after(() => api[Symbol.asyncDispose]())

  const at = (name: string) => join(made.workdir, name)
  const call = (method: string, file: string, body?: unknown, keys: string[] = []) => {
    const query = new URLSearchParams([['file', file], ...keys.map((key) => ['key', key])])
    return api.call(method, `/v1/sandboxes/${made.id}/env?${query}`, body)
  }
  const variablesOf = async (file: string) => {
    const response = await call('GET', file)
    return ((await response.json()) as { variables: Record<string, string> }).variables
  }
  const set = (file: string, variables: Record<string, unknown>) => call('PATCH', file, { variables })

  it('are made when there is none, for the owner alone, and read', async () => {
    const response = await set('config/.env', { A: '1', B: 'two words', C: 'a\nb' })
    assert.equal(response.status, 200)
    assert.deepEqual(await response.json(), { keys: ['A', 'B', 'C'] })
    assert.equal(readFileSync(at('config/.env'), 'utf8'), "A=1\nB='two words'\nC='a\nb'\n")
    assert.equal(statSync(at('config/.env')).mode & 0o777, 0o600)
    assert.deepEqual(await variablesOf('config/.env'), { A: '1', B: 'two words', C: 'a\nb' })
    assert.deepEqual(await variablesOf(at('config/.env')), { A: '1', B: 'two words', C: 'a\nb' })
  })

  it('keep what is not changed, bytes that are not UTF-8 and their mode too', async () => {
    const bytes = Buffer.concat([
      Buffer.from('# '),
      Buffer.from([0xe9, 0xff]),
      Buffer.from('\r\nA=1\r\nB=ü à\r\n'),
    ])
    writeFileSync(at('kept'), bytes, { mode: 0o644 })
    assert.equal((await set('kept', { A: 'ñ', C: '日本 à' })).status, 200)
    const tail = Buffer.from("\r\nA='ñ'\r\nB=ü à\r\nC='日本 à'\r\n")
    assert.deepEqual(readFileSync(at('kept')), Buffer.concat([bytes.subarray(0, 4), tail]))
    assert.equal(statSync(at('kept')).mode & 0o777, 0o644)
    assert.deepEqual(await variablesOf('kept'), { A: 'ñ', B: 'ü à', C: '日本 à' })
  })

  it('lose the keys that are removed, and answer with those that were there', async () => {
    writeFileSync(at('less'), "A=1\nB='x\ny'\nA=2\nC=3\n")
    const response = await call('DELETE', 'less', undefined, ['A', 'B', 'none'])
    assert.deepEqual(await response.json(), { keys: ['A', 'B'] })
    assert.equal(readFileSync(at('less'), 'utf8'), 'C=3\n')
    assert.deepEqual(await (await call('DELETE', 'less', undefined, ['A'])).json(), { keys: [] })
  })

  it('that are not there are not found, but by an update', async () => {
    for (const response of [await call('GET', 'none'), await call('DELETE', 'none', undefined, ['A'])]) {
      const error = await errorOf(response)
      assert.equal(error.code, 'file_not_found')
      assert.ok(error.message.includes(at('none')), error.message)
    }
    mkdirSync(at('folder'))
    assert.equal((await errorOf(await set('folder', { A: '1' }))).code, 'is_a_directory')
  })

  it('take concurrent changes one after the other, by whatever name', async () => {
    writeFileSync(at('busy'), '# many\n')
    symlinkSync('busy', at('alias'))
    const changes = Array.from({ length: 50 }, (_, index) =>
      set(index % 2 ? 'busy' : './alias', { [`K${index}`]: `${index}` }),
    )
    for (const response of await Promise.all(changes)) assert.equal(response.status, 200)
    const expected = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`K${index}`, `${index}`]))
    assert.deepEqual(await variablesOf('busy'), expected)
    await Promise.all(
      Array.from({ length: 25 }, (_, index) => call('DELETE', 'alias', undefined, [`K${index * 2}`])),
    )
    assert.equal(Object.keys(await variablesOf('busy')).length, 25)
  })

  it('are bounded, and so are keys and values', async () => {
    writeFileSync(at('large'), `A=${'x'.repeat(600_000)}\n`)
    for (const response of [await call('GET', 'large'), await set('large', { B: '1' })])
      assert.equal((await errorOf(response)).code, 'bad_request')
    assert.equal(statSync(at('large')).size, 600_003)
    const many = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [`V${index}`, 'x'.repeat(60_000)]),
    )
    assert.equal((await errorOf(await set('grown', many))).code, 'bad_request')
    for (const variables of [
      { 'a b': '1' },
      { '': '1' },
      { '1A': '1' },
      { A: 1 },
      { A: 'x\0' },
      { A: '\ud800' },
    ]) {
      const error = await errorOf(await set('bad', variables))
      assert.equal(error.code, 'bad_request', JSON.stringify(variables))
      assert.match(error.message, /^variables/)
    }
    assert.equal((await call('GET', 'bad')).status, 404)
    assert.equal((await errorOf(await call('DELETE', 'kept'))).code, 'bad_request')
  })

  it('do not show their values in the log', async () => {
    await set('.env', { SECRET: 'hunter2-hunter2' })
    await call('GET', '.env')
    assert.ok(api.logged.length > 0)
    assert.ok(!api.logged.some((line) => line.includes('hunter2')))
  })
})
