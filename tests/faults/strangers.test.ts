// Processes in a sandbox that no record of this server knows, as in one that began with the memory of another.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { ProcessInfo } from '@islet/contract'
import { until } from '../coming-from/until.ts'
import { say } from '../support/shell.ts'
import { withServer } from './crash.ts'

test('a process without a record runs on, however much it prints, and one that has ended is forgotten', async () => {
  await withServer(async (server) => {
    const sandbox = await server.islet().sandboxes.create()
    const processes = `/v1/sandboxes/${sandbox.id}/processes`
    const start = async (command: string) =>
      (await (await server.post(processes, { command })).json()) as ProcessInfo
    const prints = 'seq 100000; echo $i > count.new; mv count.new count'
    const runs = await start(`i=0; while :; do i=$((i+1)); ${prints}; done`)
    const ends = await start('sleep 0.5')
    await until(async () => (await sandbox.exec.run('test -e count')).exitCode === 0)
    await server.kill()
    forget(server.dataDir, [runs.id, ends.id])
    await server.start()

    const count = async () => Number(await say(sandbox, 'cat count'))
    const before = await count()
    await until(async () => (await count()) > before + 2)
    const listed = (await (await server.fetch(processes)).json()) as { processes: ProcessInfo[] }
    assert.ok(!listed.processes.some(({ id }) => id === runs.id || id === ends.id))
    assert.equal((await server.fetch(`${processes}/${runs.id}`)).status, 404)
  })
})

function forget(dataDir: string, ids: string[]): void {
  const db = new DatabaseSync(join(dataDir, 'islet.db'))
  for (const id of ids) db.prepare('DELETE FROM processes WHERE id = ?').run(id)
  db.close()
}
