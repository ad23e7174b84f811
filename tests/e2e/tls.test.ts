// A server that speaks TLS: clients, WebSockets, previews, a certificate that is renewed, and strangers who never finish a handshake.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, setDefaultCACertificates } from 'node:tls'
import { needs } from '../support/programs.ts'
import { ISLET } from '../support/server.ts'
import { startSuite } from '../support/suite.ts'

needs('openssl', 'python3')

const directory = mkdtempSync(join(tmpdir(), 'islet-tls-'))
const file = (name: string): string => join(directory, name)
makePair('first')
makePair('second')
usePair('first')
setDefaultCACertificates([readFileSync(file('first.crt'), 'utf8'), readFileSync(file('second.crt'), 'utf8')])
const suite = await startSuite({
  env: { ISLET_TLS_CERT: file('crt'), ISLET_TLS_KEY: file('key'), ISLET_MAX_CONNECTIONS: '64' },
})
const { server } = suite
const sandbox = await suite.create()
const { hostname: host, port } = new URL(server.url)
after(() => rmSync(directory, { recursive: true }))

test('the SDK, a WebSocket and the CLI reach it over https, and not over http', async () => {
  assert.match(server.url, /^https:/)
  assert.equal((await sandbox.exec.run('echo hi')).stdout, 'hi\n')
  let echoed = ''
  const session = await sandbox.exec.start('cat', {
    onStdout: (data) => {
      echoed += Buffer.from(data)
    },
  })
  await session.sendStdin('over wss')
  session.closeStdin()
  assert.equal((await session.result).exitCode, 0)
  assert.equal(echoed, 'over wss')
  const env = { ...server.clientEnv, NODE_EXTRA_CA_CERTS: file('first.crt') }
  const listed = execFileSync(process.execPath, [ISLET, 'list', '--json'], { env, encoding: 'utf8' })
  assert.ok(listed.includes(sandbox.id))
  const url = await sandbox.files.downloadUrl('/etc/hostname')
  assert.ok(url.startsWith(`${server.url}/`))
  await assert.rejects(fetch(server.url.replace('https', 'http')))
  const old = connect({ host, port: Number(port), maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1' })
  await assert.rejects(once(old, 'secureConnect'))
})

test('a preview is served over https, and its cookie is for https alone', async () => {
  await sandbox.exec.start('exec python3 -m http.server --bind 127.0.0.1 3000')
  const url = await sandbox.getUrl({ port: 3000, protocol: 'https' })
  while ((await fetch(url)).status !== 200) await sleep(50)
  const { token } = await sandbox.createPreviewURL({ port: 3000, authConfig: { type: 'token' } })
  assert.equal((await fetch(url)).status, 401)
  const opened = await fetch(`${url}/?islet_token=${token}`, {
    headers: { Accept: 'text/html' },
    redirect: 'manual',
  })
  assert.match(opened.headers.get('set-cookie') ?? '', /; Secure/)
})

test('connections without a handshake leave room for clients', async () => {
  const strangers = Array.from({ length: 300 }, () =>
    connectTcp(Number(port), host)
      .on('error', () => {})
      .resume(),
  )
  await Promise.all(strangers.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')])))
  const results = await Promise.all(Array.from({ length: 20 }, () => sandbox.exec.run('true')))
  assert.ok(results.every(({ exitCode }) => exitCode === 0))
  for (const socket of strangers) socket.destroy()
})

test('a renewed certificate is used, and one that does not work is not', async () => {
  const first = await fingerprint()
  usePair('second')
  while ((await fingerprint()) === first) await sleep(100)
  const second = await fingerprint()
  writeFileSync(file('key'), 'no key')
  while (!server.output.includes('does not work')) await sleep(100)
  assert.equal(await fingerprint(), second)
  const preview = await sandbox.createPreviewURL({ port: 3001 })
  assert.equal((await fetch(preview.url)).status, 502)
})

async function fingerprint(): Promise<string> {
  const socket = connect({ host, port: Number(port) })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

function makePair(name: string): void {
  const subject = ['-subj', '/CN=islet', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  execFileSync(
    'openssl',
    ['req', '-x509', ...key, ...subject, '-keyout', file(`${name}.key`), '-out', file(`${name}.crt`)],
    { stdio: 'ignore' },
  )
}

/** Whole files take the place of the old ones, one after the other. */
function usePair(name: string): void {
  for (const kind of ['crt', 'key']) {
    writeFileSync(file('new'), readFileSync(file(`${name}.${kind}`)))
    renameSync(file('new'), file(kind))
  }
}
