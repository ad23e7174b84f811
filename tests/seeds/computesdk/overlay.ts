import assert from 'node:assert/strict'
import type { Programs } from '../seeds.ts'
import type { World } from './world.ts'

export function overlayPrograms({ sandbox }: World): Programs {
  const { filesystem } = sandbox
  const { overlay } = filesystem
  const source = '/templates/node'
  return {
    'an overlay copies a template in the background': async () => {
      await filesystem.writeFile(`${source}/src/index.js`, 'one')
      await filesystem.writeFile(`${source}/node_modules/dep/index.js`, 'two')
      await filesystem.writeFile(`${source}/.git/config`, 'three')
      await filesystem.writeFile(`${source}/debug.log`, 'four')
      const made = await overlay.create({ source, target: './project', strategy: 'smart' })
      assert.ok(['pending', 'in_progress', 'complete'].includes(made.copyStatus))
      assert.deepEqual([made.source, made.strategy], [source, 'smart'])
      assert.match(made.target, /project$/)
      assert.ok(made.id && Date.parse(made.createdAt) > 0)
      const done = await overlay.waitForCompletion(made.id)
      assert.deepEqual([done.copyStatus, done.copyError], ['complete', undefined])
      const { stdout } = await sandbox.runCommand(
        'cat project/src/index.js project/node_modules/dep/index.js',
      )
      assert.equal(stdout, 'onetwo')
      assert.equal((await sandbox.runCommand('test -L project/node_modules')).exitCode, 0)
      assert.equal((await overlay.create({ source, target: './by-default' })).strategy, 'smart')
    },
    'an overlay is waited for, with the delays that are given': async () => {
      const done = await overlay.create({ source, target: './app', waitForCompletion: true })
      assert.equal(done.copyStatus, 'complete')
      const waitForCompletion = { maxRetries: 100, initialDelayMs: 10, maxDelayMs: 100, backoffFactor: 2 }
      const copied = await overlay.create({ source, target: './copied', strategy: 'copy', waitForCompletion })
      assert.deepEqual([copied.copyStatus, copied.strategy], ['complete', 'copy'])
      const { id } = await overlay.create({ source, target: './later' })
      assert.equal((await overlay.waitForCompletion(id, waitForCompletion)).copyStatus, 'complete')
      assert.equal((await sandbox.runCommand('test -L copied/node_modules')).exitCode, 1)
    },
    'an overlay leaves out what is ignored': async () => {
      const { stats } = await overlay.create({
        source,
        target: './clean',
        ignore: ['node_modules', '.git', '*.log'],
        waitForCompletion: true,
      })
      assert.equal(stats.copiedFiles, 1)
      assert.ok(stats.copiedDirs >= 1)
      assert.equal(stats.skipped.length, 3)
      assert.equal((await sandbox.runCommand('ls -A clean')).stdout, 'src\n')
    },
    'a template that is missing is a failed copy or an error': async () => {
      const made = overlay.create({ source: '/templates/none', target: './none', waitForCompletion: true })
      const outcome = await made.then(
        ({ copyStatus, copyError }) => `${copyStatus} ${copyError}`,
        (error) => `${error.code} ${error.message}`,
      )
      assert.match(outcome, /^(failed|file_not_found) .*\/templates\/none/)
    },
    'overlays are listed, retrieved and destroyed': async () => {
      const all = await overlay.list()
      assert.ok(all.length >= 4)
      for (const one of all) assert.deepEqual(await overlay.retrieve(one.id), one)
      for (const { id } of all) await overlay.destroy(id)
      assert.deepEqual(await overlay.list(), [])
      assert.equal((await sandbox.runCommand('test -e project')).exitCode, 1)
      await assert.rejects(overlay.retrieve(all[0]!.id), { code: 'overlay_not_found' })
      assert.equal(await filesystem.readFile(`${source}/node_modules/dep/index.js`), 'two')
    },
  }
}
