// A guest that a new server has to wait for: on a busy machine it takes its time to dial again.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../coming-from/until.ts'
import { slotOf } from '../support/leftovers.ts'
import { signalCells, withServer } from './crash.ts'

/** Longer than any one attempt to reach it. */
const LATE_MS = 12_000

test('services and jobs are found again however late their guest comes back', async () => {
  await withServer(
    async (server) => {
      const sandbox = await server.islet().sandboxes.create()
      await sandbox.service.start({ name: 'beat', start: 'exec sleep 100000' })
      const { pid } = await sandbox.service.waitFor('beat', 'running')
      const job = await sandbox.exec.spawn('until [ -e go ]; do sleep 0.05; done; echo done; exit 7')
      const slot = slotOf(server.dataDir)!
      await server.kill()
      signalCells(slot, 'SIGSTOP')
      try {
        await server.start()
        await sleep(LATE_MS)
      } finally {
        signalCells(slot, 'SIGCONT')
      }
      const again = await server.islet().sandboxes.connect(sandbox.id)
      await until(async () => (await again.exec.run('true').catch(() => undefined)) !== undefined)
      const { status, pid: pidNow } = await again.service.retrieve('beat')
      assert.deepEqual([status, pidNow], ['running', pid])
      await again.files.write('go', '')
      await until(async () => (await again.exec.get(job.id)).status !== 'running')
      const { result } = await again.exec.get(job.id)
      assert.equal(result?.exitCode, 7)
    },
    { env: { ISLET_DEFAULT_RUNTIME: 'host' } },
  )
})

test('a service whose start a crash cut off before the guest heard of it is started, however late the guest comes back', async () => {
  await withServer(
    async (server) => {
      const sandbox = await server.islet().sandboxes.create()
      await sandbox.service.start({ name: 'beat', start: 'exec sleep 100000' })
      await sandbox.service.waitFor('beat', 'running')
      await sandbox.service.stop('beat')
      const slot = slotOf(server.dataDir)!
      await server.kill()
      // As it is written down just before the guest is asked: it does not know this process.
      const db = new DatabaseSync(join(server.dataDir, 'islet.db'))
      db.exec(
        `UPDATE processes SET id = substr(id, 1, length(id) - 3) || 'xxx', status = 'running', ended_at = NULL, result = NULL`,
      )
      db.exec(
        `UPDATE services SET state = json_set(state, '$.goal', 'up', '$.status', 'starting', '$.attemptAt', 0)`,
      )
      db.close()
      signalCells(slot, 'SIGSTOP')
      try {
        await server.start()
        await sleep(1000)
      } finally {
        signalCells(slot, 'SIGCONT')
      }
      const again = await server.islet().sandboxes.connect(sandbox.id)
      await until(async () => (await again.exec.list({ status: 'lost' })).length === 1)
      assert.equal((await again.service.waitFor('beat', 'running')).status, 'running')
    },
    { env: { ISLET_DEFAULT_RUNTIME: 'host' } },
  )
})
