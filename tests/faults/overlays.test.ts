import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OverlayInfo, Sandbox } from 'islet'
import { slotOf } from '../support/leftovers.ts'
import { say } from '../support/shell.ts'
import { assertNoLeak, crashDuring, killCells, withServer } from './crash.ts'

const FILES = 3000
/** Milliseconds after the request: before it, at its answer, and in the midst of the copying. */
const MOMENTS = [0, 15, 60, 200, 400]
const WAIT = { initialDelayMs: 20, maxRetries: 1000, maxDelayMs: 500 }

test('an overlay that was acknowledged is completed, whenever the server is killed', async () => {
  await withServer(async (server) => {
    const sandbox = await withTemplate(await server.islet().sandboxes.create())
    for (const [index, moment] of MOMENTS.entries()) {
      const target = `copy-${index}`
      const again = await server.islet().sandboxes.connect(sandbox.id)
      const made = await crashDuring(server, moment, () =>
        again.files.overlay.create({ source: '/opt/template', target, strategy: 'copy' }),
      )
      const { overlay } = (await server.islet().sandboxes.connect(sandbox.id)).files
      const recorded = (await overlay.list()).find((info) => info.target === target)
      if (!recorded) assert.equal(made, undefined, 'what was acknowledged is recorded')
      else await assertCopied(sandbox, await overlay.waitForCompletion(recorded.id, WAIT))
    }
    for (const { id, target } of await sandbox.files.overlay.list()) {
      await sandbox.files.overlay.destroy(id)
      assert.equal(await sandbox.files.exists(target), false)
    }
    await assertNoLeak(server)
  })
})

test('an overlay continues in a sandbox that was started again', async () => {
  await withServer(async (server) => {
    const sandbox = await withTemplate(await server.islet().sandboxes.create())
    await sandbox.files.makeDir('mine')
    await sandbox.files.write('mine/own', 'own')
    const { id } = await sandbox.files.overlay.create({ source: '/opt/template', target: 'mine' })
    await server.kill()
    killCells(slotOf(server.dataDir)!)
    await server.start()
    const again = await server.islet().sandboxes.connect(sandbox.id)
    await assertCopied(again, await again.files.overlay.waitForCompletion(id, WAIT), 1)
    await again.files.overlay.destroy(id)
    assert.equal(await say(again, 'ls mine'), 'own')
    await assertNoLeak(server)
  })
})

async function withTemplate(sandbox: Sandbox): Promise<Sandbox> {
  const script = `mkdir -p /opt/template; cd /opt/template
    for d in $(seq 30); do mkdir $d; for f in $(seq ${FILES / 30}); do echo $d-$f > $d/$f; done; done`
  await say(sandbox, script, { user: 'root' })
  return sandbox
}

async function assertCopied(sandbox: Sandbox, overlay: OverlayInfo, others = 0): Promise<void> {
  assert.equal(overlay.copyStatus, 'complete', overlay.copyError)
  assert.deepEqual(overlay.stats, { copiedFiles: FILES, copiedDirs: 30, linkedDirs: 0, skipped: [] })
  const { target } = overlay
  assert.equal(await say(sandbox, `find ${target} -type f | wc -l`), String(FILES + others))
  assert.equal(
    await say(sandbox, `cat ${target}/*/* | sort | sha256sum`),
    await say(sandbox, 'cat /opt/template/*/* | sort | sha256sum'),
  )
}
