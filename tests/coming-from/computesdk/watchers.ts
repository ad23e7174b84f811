import assert from 'node:assert/strict'
import type { FileChange, Sandbox } from 'islet'
import { failsWith } from '../../support/shell.ts'
import type { Rows } from '../rows.ts'
import { until } from '../until.ts'

export function watcherRows(sandbox: Sandbox): Rows {
  const { files, watcher } = sandbox
  const run = (command: string) => sandbox.runCommand(command)
  async function watching(path: string, options?: Parameters<typeof watcher.create>[1]) {
    await files.makeDir(path)
    const opened = await watcher.create(path, options)
    const events: FileChange[] = []
    opened.on('change', (event) => void events.push(event))
    const saw = (event: string, name: string) =>
      until(() => events.some((seen) => seen.event === event && seen.path === `${path}/${name}`))
    return { opened, events, saw }
  }

  return {
    'watcher.create(path, options)': async () => {
      const { opened, events, saw } = await watching('/tmp/watched', {
        includeContent: true,
        ignored: ['node_modules', '*.log'],
        encoding: 'base64',
      })
      await run(
        'cd /tmp/watched; mkdir node_modules; echo 0 > node_modules/a; echo 0 > x.log; mkdir sub; echo hi > sub/f',
      )
      await saw('addDir', 'sub')
      await saw('add', 'sub/f')
      const withContent = () =>
        events.find(({ content }) => content === Buffer.from('hi\n').toString('base64'))
      await until(() => withContent() !== undefined)
      await run('echo more >> /tmp/watched/sub/f')
      await saw('change', 'sub/f')
      await run('rm -r /tmp/watched/sub')
      await saw('unlink', 'sub/f')
      await saw('unlinkDir', 'sub')
      assert.deepEqual(
        events.filter(({ path }) => /node_modules|\.log$/.test(path)),
        [],
      )
      await opened.destroy()
    },
    'watcher.list()': async () => {
      const { opened } = await watching('/tmp/listed', { includeContent: true })
      const [info] = await watcher.list()
      const { id, path, includeContent, ignored, status, encoding } = info!
      assert.deepEqual(
        [id, path, includeContent, ignored, status, encoding],
        [opened.getId(), '/tmp/listed', true, [], 'active', 'raw'],
      )
      await opened.destroy()
      assert.deepEqual(await watcher.list(), [])
    },
    'watcher.retrieve(id)': async () => {
      const { opened } = await watching('/tmp/retrieved')
      assert.equal((await watcher.retrieve(opened.getId())).status, 'active')
      await opened.destroy()
      await failsWith(watcher.retrieve(opened.getId()), 'watcher_not_found')
    },
    'watcher.destroy(id)': async () => {
      const { opened } = await watching('/tmp/destroyed')
      let isDestroyed = false
      opened.on('destroyed', () => {
        isDestroyed = true
      })
      await watcher.destroy(opened.getId())
      await until(() => isDestroyed)
      assert.equal(opened.isActive(), false)
      await failsWith(watcher.destroy(opened.getId()), 'watcher_not_found')
    },
    'fileWatcher.getId()': async () => {
      const { opened } = await watching('/tmp/getters', { includeContent: true, ignored: ['*.test.ts'] })
      assert.match(opened.getId(), /^wtc-/)
      assert.deepEqual(
        [opened.getPath(), opened.getStatus(), opened.isActive(), opened.isIncludingContent()],
        ['/tmp/getters', 'active', true, true],
      )
      assert.deepEqual(opened.getIgnoredPatterns(), ['*.test.ts'])
      assert.ok(opened.getChannel().includes(opened.getId()))
      await opened.destroy()
      assert.equal(opened.getStatus(), 'stopped')
    },
    'fileWatcher.on(event, handler)': async () => {
      const { opened, saw } = await watching('/tmp/on')
      let seen = 0
      opened.on('change', () => {
        throw new Error('this handler fails, and the others go on')
      })
      opened.on('change', () => void seen++)
      await files.write('/tmp/on/a', '')
      await saw('add', 'a')
      await until(() => seen > 0)
      await opened.destroy()
    },
    'fileWatcher.off(event, handler)': async () => {
      const { opened, saw } = await watching('/tmp/off')
      const dropped: FileChange[] = []
      const handler = (event: FileChange) => void dropped.push(event)
      opened.on('change', handler)
      opened.off('change', handler)
      opened.off('change', () => {})
      await files.write('/tmp/off/a', '')
      await saw('add', 'a')
      assert.deepEqual(dropped, [])
      await opened.destroy()
    },
    'fileWatcher.destroy()': async () => {
      const { opened } = await watching('/tmp/last')
      await opened.destroy()
      assert.deepEqual(await watcher.list(), [])
    },
  }
}
