// Sandboxes that take all the room there is, in every way they can, on a pool that is too small for one of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CreateOptions, hasCode, type Sandbox } from 'islet'
import { until } from '../coming-from/until.ts'
import type { Suite } from '../support/suite.ts'
import { eachIsolation } from './attack.ts'

/** Each would take more than the pool has. */
const FILLERS = {
  'one large file': 'dd if=/dev/zero of=/big bs=1M count=2000',
  'many files': 'i=0; while head -c 8M /dev/zero > /f-$i; do i=$((i+1)); done',
  'blocks that are never written': 'i=0; while fallocate -l 10M /f-$i; do i=$((i+1)); done',
}

await eachIsolation({ area: 'disk', env: { ISLET_POOL_SIZE: '512Mi', ISLET_WARM_MAX: '0' } }, (target) => {
  for (const [name, command] of Object.entries(FILLERS))
    test(`${name}: who fills the disk is paused or refused, and deleting it brings all back`, async () => {
      const { suite } = target
      await target.attack(`fills the disk: ${name}`, 1, async () => {
        const culprit = await create(suite, { user: 'root' })
        const filling = await culprit.exec.spawn(command)
        await until(async () => {
          const { status } = await suite.islet.sandboxes.get(culprit.id)
          return status === 'paused' || (await culprit.exec.get(filling.id)).status !== 'running'
        })
        await suite.islet.sandboxes.delete(culprit.id)
        await until(async () => (await suite.server.fetch('/ready')).status === 200)
        const next = await create(suite)
        assert.equal((await next.exec.run('echo here')).stdout, 'here\n')
        await suite.islet.sandboxes.delete(next.id)
      })
    })
})

/** A small pool may be low once more while the filesystem cleans up after a deletion. */
async function create(suite: Suite, options: CreateOptions = {}): Promise<Sandbox> {
  let made: Sandbox | undefined
  await until(async () => {
    made = await suite.create(options).catch((error) => {
      if (!hasCode(error, 'disk_low', 'server_disk_full')) throw error
      return undefined
    })
    return made !== undefined
  })
  return made!
}
