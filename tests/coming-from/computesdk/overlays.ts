import assert from 'node:assert/strict'
import type { Sandbox } from 'islet'
import { failsWith } from '../../support/shell.ts'
import type { Rows } from '../rows.ts'

export function overlayRows(sandbox: Sandbox): Rows {
  const { files } = sandbox
  const run = (command: string) => sandbox.runCommand(command)
  return {
    'overlay.create(options)': async () => {
      await run('mkdir -p /tmp/template/src /tmp/template/node_modules/dep /tmp/template/.git')
      await run('cd /tmp/template; echo 1 > src/a; echo 2 > node_modules/dep/b; touch .git/c x.log')
      const options = { source: '/tmp/template', ignore: ['.git', '*.log'] }
      const begun = await files.overlay.create({ ...options, target: './first', strategy: 'copy' })
      assert.ok(['pending', 'in_progress', 'complete'].includes(begun.copyStatus))
      const done = await files.overlay.create({ ...options, target: './second', waitForCompletion: true })
      assert.deepEqual([done.copyStatus, done.strategy], ['complete', 'smart'])
      assert.equal(done.stats.copiedFiles, 1)
      assert.deepEqual(done.stats.skipped.length, 2)
      assert.equal(await files.read('second/node_modules/dep/b'), '2\n')
      assert.equal((await files.stat('second/node_modules', { follow: false })).type, 'symlink')
      assert.equal(await files.exists('second/.git'), false)
    },
    'overlay.list()': async () => {
      assert.equal((await files.overlay.list()).length, 2)
    },
    'overlay.retrieve(id)': async () => {
      const [first] = await files.overlay.list()
      assert.equal((await files.overlay.retrieve(first!.id)).source, '/tmp/template')
      await failsWith(files.overlay.retrieve('ovl-00000000000000000000'), 'overlay_not_found')
    },
    'overlay.waitForCompletion(id, options)': async () => {
      for (const { id } of await files.overlay.list()) {
        const done = await files.overlay.waitForCompletion(id, { initialDelayMs: 10, backoffFactor: 2 })
        assert.equal(done.copyStatus, 'complete')
      }
      assert.equal((await files.stat('first/node_modules', { follow: false })).type, 'directory')
    },
    'overlay.destroy(id)': async () => {
      for (const { id } of await files.overlay.list()) await files.overlay.destroy(id)
      assert.deepEqual(await files.overlay.list(), [])
      assert.equal(await files.exists('second'), false)
      assert.equal(await files.exists('/tmp/template/node_modules/dep/b'), true)
    },
  }
}
