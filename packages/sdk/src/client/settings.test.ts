import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { Islet } from '../islet/islet.ts'
import { DEFAULT_URL, keyHint, resolveSettings } from './settings.ts'

const NAMES = ['ISLET_URL', 'ISLET_API_KEY', 'ISLET_DATA_DIR'] as const
const saved = NAMES.map((name) => [name, process.env[name]] as const)
let directory = ''

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'islet-sdk-'))
  for (const name of NAMES) delete process.env[name]
  process.env.ISLET_DATA_DIR = directory
})

afterEach(() => {
  rmSync(directory, { recursive: true })
  for (const [name, value] of saved) {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
})

test('the key of this machine is read from its data directory', () => {
  writeFileSync(join(directory, 'key'), 'local-key\n')
  const keyPath = join(directory, 'key')
  assert.deepEqual(resolveSettings(), { url: DEFAULT_URL, apiKey: 'local-key', keyPath })
})

test('the key of this machine is not shown to another machine', () => {
  writeFileSync(join(directory, 'key'), 'local-key\n')
  assert.equal(resolveSettings({ url: 'https://islet.example.com' }).apiKey, undefined)
  assert.equal(resolveSettings({ url: 'http://localhost:9' }).apiKey, 'local-key')
})

test('the caller comes before the environment, and the environment before the file', () => {
  writeFileSync(join(directory, 'key'), 'local-key\n')
  process.env.ISLET_URL = 'http://127.0.0.1:9/'
  process.env.ISLET_API_KEY = 'env-key'
  assert.deepEqual(resolveSettings(), { url: 'http://127.0.0.1:9', apiKey: 'env-key' })
  assert.deepEqual(resolveSettings({ url: 'http://a', apiKey: 'b' }), { url: 'http://a', apiKey: 'b' })
})

test('the socket of this machine is used unless an address, or a way to reach one, is given', async () => {
  writeFileSync(join(directory, 'key'), 'local-key\n')
  const socketPath = join(directory, 'islet.sock')
  const server = createServer().listen(socketPath)
  await once(server, 'listening')
  const local = {
    url: `unix:${socketPath}`,
    socketPath,
    apiKey: 'local-key',
    keyPath: join(directory, 'key'),
  }
  assert.deepEqual(resolveSettings(), local)
  assert.deepEqual(resolveSettings({ token: 't' }), { url: local.url, socketPath, apiKey: undefined })
  assert.equal(resolveSettings({ apiKey: 'given' }).url, local.url)
  assert.equal(resolveSettings({ url: DEFAULT_URL }).url, DEFAULT_URL)
  assert.equal(resolveSettings({ fetch }).url, DEFAULT_URL)
  assert.match(keyHint({})!, /key in .*\/key belongs to another server/)
  process.env.ISLET_URL = 'http://127.0.0.1:9'
  assert.equal(resolveSettings().socketPath, undefined)
  await new Promise((resolve) => server.close(resolve))
})

test('without any key there is none', () => {
  assert.equal(resolveSettings().apiKey, undefined)
})

test('what to do about a refused key depends on where the key came from', () => {
  assert.match(keyHint({})!, /no key in \/.*\/key: set ISLET_API_KEY, or ISLET_DATA_DIR/)
  writeFileSync(join(directory, 'key'), 'local-key\n')
  assert.match(keyHint({})!, /key in .*\/key belongs to another server: set ISLET_DATA_DIR/)
  assert.match(keyHint({ url: 'https://islet.example.com' })!, /Set ISLET_API_KEY to the key of https:/)
  process.env.ISLET_API_KEY = 'env-key'
  assert.match(keyHint({})!, /^ISLET_API_KEY is not the key/)
  assert.equal(keyHint({ apiKey: 'given' }), undefined)
})

test('an address without http:// or https:// is named, with what was given and what is expected', () => {
  for (const [given, meant] of [
    ['localhost:7400', 'http://localhost:7400'],
    ['127.0.0.1:7400/', 'http://127.0.0.1:7400'],
    ['[::1]:7400', 'http://[::1]:7400'],
    ['example.com', 'https://example.com'],
  ] as const) {
    process.env.ISLET_URL = given
    const wrong = { code: 'invalid_url', retryable: false, hint: `Set ISLET_URL to ${meant}.` }
    assert.throws(() => resolveSettings(), wrong)
    assert.throws(() => new Islet({ url: given, token: 'any' }), { ...wrong, hint: `Set url to ${meant}.` })
  }
  for (const given of [
    'ftp://example.com',
    'http://',
    'http://a b',
    'unix:///run/x',
    '/api',
    'me:secret@:x',
  ]) {
    process.env.ISLET_URL = given
    assert.throws(
      () => resolveSettings(),
      ({ code, message, hint }) =>
        code === 'invalid_url' &&
        /^ISLET_URL is '.*', which/.test(message) &&
        hint.includes('http') &&
        !message.includes('secret'),
      given,
    )
  }
})
