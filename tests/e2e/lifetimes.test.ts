// Everything of a sandbox ends with it: rows, open files, waiting calls. And a server ends however many clients it has.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { Sandbox } from 'islet'
import { WebSocket } from 'ws'
import { until } from '../coming-from/until.ts'
import { assertNoLeak, withServer } from '../faults/crash.ts'
import type { TestServer } from '../support/server.ts'

const SANDBOXES = 20
const AT_ONCE = 5
/** Tables whose rows go with a sandbox. Its own row and those of its processes stay for a while. */
const TABLES = ['terminals', 'watchers', 'overlays', 'services', 'previews', 'store']
const CODES = ['sandbox_lost', 'invalid_state', 'service_not_found', 'overlay_not_found']
/** As /proc/net/tcp says it. */
const LISTENS = '0A'
const STRICT = { env: { NODE_OPTIONS: '--unhandled-rejections=strict' } }
const BRIEF = { env: { ...STRICT.env, ISLET_DRAIN_TIMEOUT: '500ms' } }

test(`${SANDBOXES} sandboxes that used everything leave no row and no open file`, {
  timeout: 600_000,
}, async () => {
  await withServer(async (server) => {
    const useSome = () => Promise.all(Array.from({ length: AT_ONCE }, () => useAll(server)))
    await useSome()
    const before = openFiles(server)
    for (let made = 0; made < SANDBOXES; made += AT_ONCE) await useSome()
    await until(() => openFiles(server) <= before)
    await assertNoLeak(server)
    await server.stop()
    assert.deepEqual(rowsOf(server), Object.fromEntries(TABLES.map((table) => [table, 0])))
  }, STRICT)
})

test('calls that wait in a deleted sandbox are answered at once', { timeout: 120_000 }, async () => {
  await withServer(async (server) => {
    const { pid } = server
    for (const [name, wait] of Object.entries(WAITS)) {
      const sandbox = await server.islet().sandboxes.create()
      const { begun, done } = await wait(sandbox)
      await begun
      const outcome = done.then(() => undefined).catch((error) => error)
      await sandbox.kill()
      const { code, message } = Object(await outcome)
      assert.ok(CODES.includes(code), `${name}: ${code} ${message}`)
    }
    assert.equal(server.pid, pid)
    assert.equal((await server.fetch('/health')).status, 200)
  }, STRICT)
})

test('a server with clients of every kind ends when it is told to, and the next one has it all', {
  timeout: 120_000,
}, async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    await serve(sandbox)
    const url = await sandbox.getUrl({ port: 3000 })
    const terminal = await sandbox.terminal.create({ pty: true })
    const watcher = await sandbox.watcher.create('.')
    const signals = await sandbox.signals.start()
    await sandbox.store.set('key', { value: 1 })
    const socket = new WebSocket(`${url.replace('http', 'ws')}/`)
    socket.on('error', () => {})
    await once(socket, 'upgrade')
    const { id } = await sandbox.exec.spawn('sleep 1000')
    const waits = [
      once(socket, 'close'),
      sandbox.exec.run('sleep 1000'),
      server.fetch(`/v1/sandboxes/${sandbox.id}/processes/${id}?wait=60000`),
      server.fetch(`/v1/sandboxes/${sandbox.id}/services/web?status=failed&wait=60000`),
      fetch(`${url}/slow`).then((response) => response.text()),
    ].map((wait) => wait.catch(() => {}))
    await until(async () => (await sandbox.exec.list({ status: 'running' })).length === 4)
    assert.equal(await server.stop(), 0)
    await Promise.all(waits)
    await server.start()
    const again = await server.islet().sandboxes.connect(sandbox.id)
    assert.equal((await again.service.waitFor('web')).status, 'ready')
    assert.equal((await again.store.get('key')).value, 1)
    assert.equal((await again.terminal.retrieve(terminal.id)).status, 'running')
    assert.equal((await again.watcher.list()).length, 1)
    assert.equal((await again.exec.get(id)).status, 'running')
    assert.equal((await fetch(url)).status, 200)
    terminal.disconnect()
    signals.close()
    await watcher.destroy()
  }, BRIEF)
})

async function useAll(server: TestServer): Promise<void> {
  const sandbox = await server.islet().sandboxes.create({ storeAccess: true })
  const { files, terminal, watcher, service, store, signals } = sandbox
  await files.makeDir('template')
  const [listener, watching, shell, commands] = await Promise.all([
    signals.start(),
    watcher.create('.'),
    terminal.create({ pty: true }),
    terminal.create(),
    files.batchWrite([{ path: 'template/a', operation: 'write', content: 'a' }]),
    serve(sandbox),
    store.set('key', { value: 'value', ttl_seconds: 3600 }),
  ])
  await Promise.all([
    files.overlay.create({
      source: '/usr/share/dpkg',
      target: 'copy',
      waitForCompletion: { initialDelayMs: 50 },
    }),
    sandbox.runCode('print(1)', 'python'),
    commands.command.run('islet-signal error inside'),
    sandbox.exec.start('sleep 1000'),
    fetch(await sandbox.getUrl({ port: 3000 })).then((page) => page.text()),
    sandbox.env.update('.env', { A: '1' }),
    service.start({ name: 'other', start: 'sleep 1000', restartPolicy: 'always' }),
  ])
  await sandbox.kill()
  listener.close()
  shell.disconnect()
  await watching.destroy().catch(() => {})
}

async function serve(sandbox: Sandbox): Promise<void> {
  const program = `import base64, hashlib, http.server, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        if self.path == '/slow': time.sleep(1000)
        key = self.headers.get('Sec-WebSocket-Key')
        self.send_response(101 if key else 200)
        if key:
            accept = hashlib.sha1((key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').encode()).digest()
            self.send_header('Upgrade', 'websocket')
            self.send_header('Connection', 'Upgrade')
            self.send_header('Sec-WebSocket-Accept', base64.b64encode(accept).decode())
        else: self.send_header('Content-Length', '0')
        self.end_headers()
        if key: time.sleep(1000)
http.server.ThreadingHTTPServer(('127.0.0.1', 3000), Handler).serve_forever()`
  await sandbox.files.write('serve.py', program)
  await sandbox.service.start({ name: 'web', start: 'exec python3 serve.py', port: 3000 })
  await sandbox.service.waitFor('web')
}

/** `begun` once it certainly runs inside. */
type Wait = (sandbox: Sandbox) => Promise<{ begun: Promise<unknown>; done: Promise<unknown> }>

const marked = (sandbox: Sandbox) => until(() => sandbox.files.exists('mark'))

const WAITS: Record<string, Wait> = {
  code: async (sandbox) => {
    const done = sandbox.runCode('touch mark; sleep 1000', 'shell')
    return { begun: marked(sandbox), done }
  },
  'a command of a terminal': async (sandbox) => {
    const terminal = await sandbox.terminal.create()
    return { begun: marked(sandbox), done: terminal.command.run('touch mark; sleep 1000') }
  },
  'a service that is waited for': async (sandbox) => {
    await sandbox.service.start({ name: 'web', start: 'sleep 1000' })
    return { begun: Promise.resolve(), done: sandbox.service.waitFor('web') }
  },
  'a service that will not stop': async (sandbox) => {
    await sandbox.service.start({
      name: 'web',
      start: `trap '' TERM; touch mark; sleep 1000 & wait; sleep 1000`,
    })
    await marked(sandbox)
    // The service stops with its sandbox, and the waiting call may see that first.
    const done = sandbox.service.stop('web').then(() => {
      throw Object.assign(new Error('It has stopped.'), { code: 'sandbox_lost' })
    })
    return { begun: Promise.resolve(), done }
  },
  'an overlay': async (sandbox) => {
    const { overlay } = sandbox.files
    const copied = overlay.create({ source: '/usr', target: 'copy', waitForCompletion: true })
    const done = copied.then(({ copyStatus, copyError }) => {
      if (copyStatus === 'failed') throw Object.assign(new Error(copyError), { code: 'sandbox_lost' })
    })
    return { begun: until(() => sandbox.files.exists('copy')), done }
  },
  'many files': async (sandbox) => {
    const content = 'x'.repeat(8000)
    const files = Array.from({ length: 1000 }, (_, n) => ({
      path: `d/${n}`,
      operation: 'write' as const,
      content,
    }))
    const done = sandbox.files.batchWrite(files).then((results) => {
      const { code, error } = results.at(-1)!
      if (code !== undefined) throw Object.assign(new Error(error), { code })
    })
    return { begun: until(() => sandbox.files.exists('d')), done }
  },
  'a watcher': async (sandbox) => {
    const done = (async () => {
      for (;;) await sandbox.watcher.create('/usr').then((watcher) => watcher.destroy())
    })()
    return { begun: Promise.resolve(), done }
  },
}

/** Without connections to the API: clients keep those for their next call. */
function openFiles(server: TestServer): number {
  const directory = `/proc/${server.pid}/fd`
  const connections = connectionsTo(Number(new URL(server.url).port))
  return readdirSync(directory).filter((name) => !connections.has(linkOf(join(directory, name)))).length
}

function connectionsTo(port: number): Set<string> {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  const isOurs = ([, address, , state]: string[]) => address?.endsWith(local) && state !== LISTENS
  return new Set(rows.filter(isOurs).map((row) => `socket:[${row[9]}]`))
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return 'closed meanwhile'
  }
}

/** Only the server may have it open: call it while there is none. */
function rowsOf(server: TestServer): Record<string, number> {
  const db = new DatabaseSync(join(server.dataDir, 'islet.db'), { readOnly: true })
  try {
    return Object.fromEntries(
      TABLES.map((table) => [
        table,
        db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()!.rows as number,
      ]),
    )
  } finally {
    db.close()
  }
}
