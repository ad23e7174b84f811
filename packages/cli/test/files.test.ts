import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { OverlayInfo, Sandbox } from '@islet/contract/client'
import { startTestApi, type TestApi } from '../../server/test/support/server.ts'
import { islet } from './islet.ts'

let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await api.createSandbox({ name: 'box' })
})
after(() => api[Symbol.asyncDispose]())

/** It must succeed. */
async function stdoutOf(...words: string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await islet(words, api)
  assert.equal(exitCode, 0, `${words.join(' ')}: ${stderr}`)
  return stdout
}

test('env sets, lists and removes variables of a file', async () => {
  assert.equal(await stdoutOf('env', 'set', 'box', 'PORT=3000', 'GREETING=hello = world'), 'PORT\nGREETING\n')
  assert.equal(await stdoutOf('env', 'ls', 'box'), 'PORT=3000\nGREETING=hello = world\n')
  assert.equal(await stdoutOf('env', 'rm', 'box', 'PORT', 'OTHER'), 'PORT\n')
  assert.deepEqual(JSON.parse(await stdoutOf('env', 'ls', '--json', 'box')), { GREETING: 'hello = world' })
  await stdoutOf('env', 'set', 'box', '-f', 'config/.env.test', 'A=')
  assert.equal(await stdoutOf('env', 'ls', 'box', '--file', 'config/.env.test'), 'A=\n')
  const missing = await islet(['env', 'ls', 'box', '-f', 'none'], api)
  assert.equal(missing.exitCode, 1)
  assert.match(missing.stderr, /none.*\nhint: /)
  for (const words of [['NOVALUE'], [], ['=x']])
    assert.equal((await islet(['env', 'set', 'box', ...words], api)).exitCode, 2)
})

test('env set takes values from the environment and from a file, so that a secret is in no argument', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'islet-cli-env-'))
  try {
    writeFileSync(join(directory, 'local'), 'FROM_FILE=1\nSECRET=overridden\n')
    const words = ['env', 'set', 'box', '-f', 'mixed', '--env-file', 'local', 'SECRET']
    const { exitCode, stdout, stderr } = await islet(words, {
      ...api,
      env: { SECRET: 'hush' },
      cwd: directory,
    })
    assert.equal(exitCode, 0, stderr)
    assert.ok(!`${stdout}${stderr}`.includes('hush'))
    assert.equal(await stdoutOf('env', 'ls', 'box', '-f', 'mixed'), 'FROM_FILE=1\nSECRET=hush\n')
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('url prints what downloads and uploads a file', async () => {
  const upload = (await stdoutOf('url', 'box', 'sent', '--upload', '--expires', '10m')).trim()
  assert.equal((await fetch(upload, { method: 'PUT', body: 'content' })).status, 200)
  const download = (await stdoutOf('url', 'box', 'sent')).trim()
  assert.equal(await (await fetch(download)).text(), 'content')
  assert.equal(JSON.parse(await stdoutOf('url', '--json', 'box', 'sent')).method, 'GET')
  assert.equal((await islet(['url', 'box', 'sent', '--expires', 'soon'], api)).exitCode, 2)
})

test('overlay copies a template, lists and removes what was copied', async () => {
  const template = `${sandbox.workdir}/template`
  await stdoutOf(
    'exec',
    '-n',
    'box',
    'mkdir -p template/node_modules template/src; touch template/src/a template/b.log',
  )
  const words = ['overlay', 'create', 'box', template, 'app', '--ignore', '*.log', '--ignore', 'none']
  const { stdout, stderr, exitCode } = await islet(words, api)
  assert.equal(exitCode, 0, stderr)
  const id = stdout.trim()
  assert.match(stderr, /^1 files and 1 directories copied, 1 linked, 1 left out\.\n$/)
  const [listed] = JSON.parse(await stdoutOf('overlay', 'ls', 'box', '--json')) as OverlayInfo[]
  assert.deepEqual([listed?.id, listed?.copyStatus], [id, 'complete'])
  assert.match(await stdoutOf('overlay', 'ls', 'box'), new RegExp(`\\n${id} +complete +smart +1 +1 `))
  assert.equal(await stdoutOf('overlay', 'rm', 'box', id), `${id}\n`)
  assert.equal(await stdoutOf('exec', '-n', 'box', 'ls -d app 2>/dev/null || true'), '')
  await stdoutOf('exec', '-n', 'box', 'mkdir -p clash/src/a')
  const failed = await islet(['overlay', 'create', 'box', template, 'clash'], api)
  assert.equal(failed.exitCode, 1)
  assert.match(failed.stderr, /hint: islet overlay rm/)
})
