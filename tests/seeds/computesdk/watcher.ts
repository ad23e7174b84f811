import assert from 'node:assert/strict'
import type { Sandbox } from 'islet/computesdk'
import { until } from '../../coming-from/until.ts'
import { failsWith } from '../../support/shell.ts'
import type { Programs } from '../seeds.ts'
import type { World } from './world.ts'

type Options = Parameters<Sandbox['watcher']['create']>[1]

export function watcherPrograms({ sandbox }: World): Programs {
  const { filesystem, watcher } = sandbox
  async function watching(path: string, options?: Options) {
    await filesystem.mkdir(path)
    const opened = await watcher.create(path, options)
    const seen: { event: string; path: string; content?: string }[] = []
    opened.on('change', (event) => void seen.push(event))
    const saw = (event: string, at: string) =>
      until(() => seen.some((one) => one.event === event && one.path === at))
    return { opened, seen, saw }
  }

  return {
    'a watcher reports what is added, changed and removed': async () => {
      const { opened, saw, seen } = await watching('/project/watched')
      await filesystem.writeFile('/project/watched/sub/app.ts', 'one')
      await saw('addDir', '/project/watched/sub')
      await saw('add', '/project/watched/sub/app.ts')
      await filesystem.writeFile('/project/watched/sub/app.ts', 'another')
      await saw('change', '/project/watched/sub/app.ts')
      await filesystem.remove('/project/watched/sub')
      await saw('unlink', '/project/watched/sub/app.ts')
      await saw('unlinkDir', '/project/watched/sub')
      assert.ok(seen.every((event) => !('content' in event)))
      await opened.destroy()
    },
    'a watcher gives content, as text or base64': async () => {
      const plain = await watching('/project/config', { includeContent: true })
      const coded = await watching('/project/config', { includeContent: true, encoding: 'base64' })
      await filesystem.writeFile('/project/config/a.json', '{ "grüße": 1 }')
      const content = '{ "grüße": 1 }'
      await until(() => plain.seen.some((event) => event.content === content))
      await until(() => coded.seen.some((event) => event.content === Buffer.from(content).toString('base64')))
      await Promise.all([plain.opened.destroy(), coded.opened.destroy()])
    },
    'a watcher is silent about what it ignores': async () => {
      const ignored = ['node_modules', '.git', '*.log', 'dist']
      const { opened, saw, seen } = await watching('/project/big', { ignored })
      for (const path of ['node_modules/a/b.js', '.git/config', 'debug.log', 'dist/out.js', 'src/last.ts'])
        await filesystem.writeFile(`/project/big/${path}`, '')
      await saw('add', '/project/big/src/last.ts')
      assert.deepEqual(
        seen.filter(({ path }) => /node_modules|\.git|\.log|dist/.test(path)),
        [],
      )
      await opened.destroy()
    },
    'watchers are listed, retrieved and destroyed': async () => {
      assert.deepEqual(await watcher.list(), [])
      const { opened } = await watching('/project/listed', { includeContent: true, ignored: ['*.log'] })
      const [info] = await watcher.list()
      const { id, path, includeContent, ignored, status, channel, encoding } = info!
      assert.deepEqual(
        [id, path, includeContent, ignored, status, encoding],
        [opened.getId(), '/project/listed', true, ['*.log'], 'active', 'raw'],
      )
      assert.ok(channel)
      assert.deepEqual(await watcher.retrieve(id), info)
      assert.equal(
        (await watcher.list()).some((one) => one.path === '/project/config'),
        false,
      )
      await watching('/project/listed')
      for (const one of await watcher.list()) await watcher.destroy(one.id)
      assert.deepEqual(await watcher.list(), [])
      await failsWith(watcher.retrieve(id), 'watcher_not_found')
      await failsWith(watcher.destroy(id), 'watcher_not_found')
    },
    'a watcher has getters': async () => {
      const { opened } = await watching('/project/src', { includeContent: true, ignored: ['*.test.ts'] })
      assert.deepEqual(
        [opened.getPath(), opened.getStatus(), opened.isActive(), opened.isIncludingContent()],
        ['/project/src', 'active', true, true],
      )
      assert.deepEqual(opened.getIgnoredPatterns(), ['*.test.ts'])
      assert.ok(opened.getId() && opened.getChannel().includes(opened.getId()))
      await opened.destroy()
      assert.deepEqual([opened.getStatus(), opened.isActive()], ['stopped', false])
    },
    'a destroyed watcher says so': async () => {
      const first = await watching('/project/output')
      let isDestroyed = false
      first.opened.on('destroyed', () => {
        isDestroyed = true
      })
      await watcher.destroy(first.opened.getId())
      await until(() => isDestroyed)
      const second = await watching('/project/output')
      second.opened.on('change', async ({ path }) => {
        if (path.endsWith('result.json')) await second.opened.destroy()
      })
      await filesystem.writeFile('/project/output/result.json', '{}')
      await until(() => !second.opened.isActive())
      await filesystem.writeFile('/project/output/later.json', '{}')
      assert.deepEqual(await watcher.list(), [])
      assert.equal(
        second.seen.some(({ path }) => path.endsWith('later.json')),
        false,
      )
    },
    'handlers are called in parallel, and taken off one by one': async () => {
      const { opened, saw } = await watching('/project/build')
      const [first, second, once]: [string[], string[], string[]] = [[], [], []]
      const handler = ({ path }: { path: string }) => void first.push(path)
      const itself = ({ path }: { path: string }) => {
        once.push(path)
        if (path.endsWith('complete.txt')) opened.off('change', itself)
      }
      opened.on('change', handler)
      opened.on('change', ({ path }) => void second.push(path))
      opened.on('change', itself)
      opened.off('change', () => {})
      await filesystem.writeFile('/project/build/complete.txt', '')
      await saw('add', '/project/build/complete.txt')
      opened.off('change', handler)
      await filesystem.writeFile('/project/build/next.txt', '')
      await saw('add', '/project/build/next.txt')
      const names = (paths: string[]) => [...new Set(paths.map((path) => path.split('/').at(-1)))]
      assert.deepEqual(
        [names(first), names(second), names(once)],
        [['complete.txt'], ['complete.txt', 'next.txt'], ['complete.txt']],
      )
      await opened.destroy()
    },
  }
}
