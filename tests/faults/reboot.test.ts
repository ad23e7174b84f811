import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import type { ProcessInfo } from '@islet/contract'
import { slotOf } from '../support/leftovers.ts'
import { needs } from '../support/programs.ts'
import { assertNoLeak, killCells, withServer } from './crash.ts'

needs('pgrep')

test('after a reboot a sandbox runs again with its files, and its processes are lost', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create({ env: { WHO: 'me' } })
    await sandbox.files.write('kept', 'still here')
    const processes = `/v1/sandboxes/${sandbox.id}/processes`
    const started = (await (await server.post(processes, { command: 'sleep 1000' })).json()) as ProcessInfo
    const before = (await sandbox.exec.run('cat /etc/machine-id; hostname')).stdout
    await server.kill()
    killCells(slotOf(server.dataDir)!)
    await server.start()
    const again = await server.islet().sandboxes.connect(sandbox.id)
    assert.equal((await again.exec.run('cat kept; printf " $WHO"')).stdout, 'still here me')
    assert.equal((await again.exec.run('cat /etc/machine-id; hostname')).stdout, before)
    const lost = (await (await server.fetch(`${processes}/${started.id}?wait=5000`)).json()) as ProcessInfo
    assert.equal(lost.status, 'lost')
    await assertNoLeak(server)
  })
})

test('a sandbox whose first process is killed fails with a reason, and can be deleted', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    const neighbour = await server.islet().sandboxes.create()
    const running = sandbox.exec.run('sleep 1000')
    running.catch(() => {})
    await sandbox.exec.run('true')
    killCells(slotOf(server.dataDir)!, 1)
    await assert.rejects(running, { code: 'sandbox_lost' })
    const { status, reason } = await server.islet().sandboxes.get(sandbox.id)
    assert.equal(status, 'failed')
    assert.ok(reason)
    await assert.rejects(sandbox.exec.run('true'), { code: 'invalid_state' })
    assert.equal((await neighbour.exec.run('echo here')).stdout, 'here\n')
    await sandbox.kill()
    await assertNoLeak(server)
  })
})

test('a warden that dies ends the server, and the next server continues', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    const warden = execFileSync('pgrep', ['-P', String(server.pid), 'warden'], { encoding: 'utf8' }).trim()
    process.kill(Number(warden), 'SIGKILL')
    await server.ended()
    await server.start()
    const again = await server.islet().sandboxes.connect(sandbox.id)
    assert.equal((await again.exec.run('echo here')).stdout, 'here\n')
  })
})
