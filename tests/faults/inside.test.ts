// Everything at once while the server is killed again and again: services, watchers, sessions, signals and the store.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FileChange, Sandbox, SignalEvent } from 'islet'
import { until } from '../coming-from/until.ts'
import type { TestServer } from '../support/server.ts'
import { assertNoLeak, withServer } from './crash.ts'

const KILLS = 6
const LINES = 400

test('services, watchers, sessions, signals and store writes outlive a server that is killed', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    await startServices(sandbox)
    const session = await follow(sandbox)
    const changes = await watch(sandbox)
    const signals = await listen(sandbox)
    const writes = writeOnAndOn(sandbox)
    const pidBefore = (await sandbox.service.retrieve('steady')).pid

    for (let kill = 0; kill < KILLS; kill++) await crash(server, sandbox)

    const acknowledged = await writes.stop()
    assert.ok(acknowledged.size > 0)
    for (const [key, value] of acknowledged) {
      assert.equal((await sandbox.store.get(key)).value, value, key)
    }
    assert.equal(await session.done, 3)
    assert.equal(session.output(), numbers(LINES))
    const { id } = await sandbox.exec.get(session.id)
    assert.equal((await sandbox.exec.output(id)).stdout, numbers(LINES))

    await sandbox.service.waitFor('steady', 'ready')
    assert.equal((await sandbox.service.retrieve('steady')).pid, pidBefore, 'it was never disturbed')
    await sandbox.service.waitFor('mortal', 'running')
    assert.ok((await sandbox.service.retrieve('mortal')).restartCount >= KILLS)

    await until(async () => {
      await sandbox.files.write(`watched/${Date.now()}`, '')
      return changes.some(({ path }) => path.includes('/watched/'))
    })
    await until(async () => {
      await sandbox.runCommand('islet-signal error "still here"')
      return signals.some((event) => event.signal === 'error')
    })
    await sandbox.kill()
    await assertNoLeak(server)
  })
})

/** While the server is away one of the services ends: its policy is applied by the next server. */
async function crash(server: TestServer, sandbox: Sandbox): Promise<void> {
  await sandbox.service.waitFor('mortal', 'running')
  const { pid } = await sandbox.service.retrieve('mortal')
  await sandbox.exec.spawn(`sleep 0.1; kill -9 ${pid}`)
  await sleep(Math.random() * 100)
  await server.kill()
  await sleep(200)
  await server.start()
  await until(async () => (await sandbox.service.retrieve('mortal')).pid !== pid)
}

async function startServices(sandbox: Sandbox): Promise<void> {
  const start = 'exec python3 -m http.server "$PORT" --bind 127.0.0.1'
  await sandbox.service.start({
    name: 'steady',
    start,
    port: 3000,
    healthCheck: { path: '/', interval: 100 },
  })
  await sandbox.service.start({
    name: 'mortal',
    start: 'exec sleep 1000',
    restartPolicy: 'on-failure',
    restartDelay: 10,
  })
  await sandbox.service.waitFor('steady', 'ready')
}

async function follow(sandbox: Sandbox) {
  const pieces: Uint8Array[] = []
  const command = `i=0; while [ $i -lt ${LINES} ]; do i=$((i+1)); echo $i; sleep 0.02; done; exit 3`
  const session = await sandbox.exec.start(command, { onStdout: (data) => void pieces.push(data) })
  return { id: session.processId, done: session.done, output: () => Buffer.concat(pieces).toString() }
}

async function watch(sandbox: Sandbox): Promise<FileChange[]> {
  await sandbox.files.makeDir('watched')
  const watcher = await sandbox.watcher.create('watched')
  const changes: FileChange[] = []
  watcher.on('change', (event) => void changes.push(event))
  return changes
}

async function listen(sandbox: Sandbox): Promise<SignalEvent[]> {
  const signals = await sandbox.signals.start()
  const seen: SignalEvent[] = []
  signals.on('signal', (event) => void seen.push(event))
  return seen
}

/** Only what was answered counts; a write that was cut off may be there or not. */
function writeOnAndOn(sandbox: Sandbox) {
  const acknowledged = new Map<string, number>()
  let isOn = true
  const work = (async () => {
    for (let at = 0; isOn; at++) {
      const key = `key ${at}`
      try {
        await sandbox.store.set(key, { value: at })
        acknowledged.set(key, at)
      } catch {
        await sleep(20)
      }
    }
  })()
  return {
    async stop() {
      isOn = false
      await work
      return acknowledged
    },
  }
}

function numbers(count: number): string {
  return Array.from({ length: count }, (_, index) => `${index + 1}\n`).join('')
}
