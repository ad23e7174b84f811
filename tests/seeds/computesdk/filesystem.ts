import assert from 'node:assert/strict'
import type { Programs } from '../seeds.ts'
import { PACKAGE, type World } from './world.ts'

export function filesystemPrograms({ sandbox }: World): Programs {
  const { filesystem } = sandbox
  const readFile = (path: string) => filesystem.readFile(path)
  const writeFile = (path: string, content: string) => filesystem.writeFile(path, content)
  const mkdir = (path: string) => filesystem.mkdir(path)
  const readdir = (path: string) => filesystem.readdir(path)
  const exists = (path: string) => filesystem.exists(path)
  const remove = (path: string) => filesystem.remove(path)
  return {
    'readFile gives text, and fails for a missing file': async () => {
      for (const [path, content] of [
        ['/app/config.txt', 'port=3000\nhost=localhost'],
        ['/app/.env', 'API_KEY=secret\nDEBUG=true'],
        ['/app/code.js', "const one = require('node:fs')\n"],
        ['/app/README.md', '# Grüße ✓\n\nText'],
      ] as const) {
        await writeFile(path, content)
        assert.equal(await readFile(path), content)
      }
      const { name, version } = JSON.parse(await readFile('/app/package.json'))
      assert.deepEqual([name, version], ['my-app', '1.0.0'])
      await assert.rejects(readFile('/nonexistent.txt'), {
        message: 'File not found: /nonexistent.txt',
        code: 'file_not_found',
      })
      const config = '/app/optional-config.json'
      assert.equal((await exists(config)) ? await readFile(config) : 'defaults', 'defaults')
      await assert.rejects(readFile('/app'), { code: 'is_a_directory' })
    },
    'writeFile creates and overwrites files': async () => {
      const data = JSON.stringify({ name: 'my-app', version: '1.0.1' }, null, 2)
      await writeFile('/app/other/deep/package.json', data)
      assert.equal(await readFile('/app/other/deep/package.json'), data)
      for (const entry of ['First entry, which is longer', 'Second entry'])
        await writeFile('/app/log.txt', entry)
      assert.equal(await readFile('/app/log.txt'), 'Second entry')
      const script = '#!/bin/bash\necho "Starting $0"\n'
      await writeFile('/app/start.sh', script)
      assert.equal(await readFile('/app/start.sh'), script)
      assert.equal((await sandbox.runCommand('bash /app/start.sh')).stdout, 'Starting /app/start.sh\n')
      await assert.rejects(writeFile('/app/log.txt/below', 'x'), { code: 'not_a_directory' })
    },
    'mkdir creates directories with their parents, once or twice': async () => {
      for (const path of ['/app/data', '/app/src', '/app/tests', '/app/dist', '/app/project/data'])
        await mkdir(path)
      await mkdir('/app/data')
      assert.equal((await sandbox.runCommand('test -d /app/project/data')).exitCode, 0)
      await assert.rejects(mkdir('/app/package.json'), { code: 'file_exists' })
    },
    'readdir lists a directory, and fails for a missing one': async () => {
      await writeFile('/app/listed/config.json', 'x'.repeat(245))
      await writeFile('/app/listed/src/index.js', '')
      await writeFile('/app/listed/src/notes.md', '')
      await mkdir('/app/listed/temp')
      const entries = await readdir('/app/listed')
      assert.ok(entries.every(({ modified }) => modified instanceof Date && modified.getTime() > 0))
      assert.deepEqual(
        entries.map(({ modified: _, ...entry }) => entry),
        [
          { name: 'config.json', type: 'file', size: 245 },
          { name: 'src', type: 'directory' },
          { name: 'temp', type: 'directory' },
        ],
      )
      const scripts = (await readdir('/app/listed/src')).filter(({ name }) => name.endsWith('.js'))
      assert.deepEqual(
        scripts.map(({ name }) => name),
        ['index.js'],
      )
      assert.deepEqual(await readdir('/app/listed/temp'), [])
      await assert.rejects(readdir('/nonexistent'), {
        message: 'Directory not found: /nonexistent',
        code: 'file_not_found',
      })
      await assert.rejects(readdir('/app/package.json'), { code: 'not_a_directory' })
    },
    'exists tells files and directories from nothing, and never throws': async () => {
      await writeFile('/app/there/data.json', '{}')
      assert.deepEqual([await exists('/app/there/data.json'), await exists('/app/there')], [true, true])
      assert.equal(await exists('/app/nonexistent.txt'), false)
      assert.equal(await exists(''), false)
      await remove('/app/there/data.json')
      assert.equal(await exists('/app/there/data.json'), false)
      await mkdir('/app/logs')
      assert.equal(await exists('/app/logs'), true)
      const checks = await Promise.all(['/app/package.json', '/app/server.js', '/app/nothing'].map(exists))
      assert.deepEqual(checks, [true, true, false])
    },
    'remove removes files and whole directories, and fails for a missing path': async () => {
      await writeFile('/app/temp.txt', 'temporary data')
      await remove('/app/temp.txt')
      assert.equal(await exists('/app/temp.txt'), false)
      await mkdir('/app/cache/images/thumbnails')
      await writeFile('/app/cache/data.json', '{}')
      await writeFile('/app/cache/images/photo.jpg', 'image data')
      await remove('/app/cache')
      assert.deepEqual(
        [await exists('/app/cache'), await exists('/app/cache/images/photo.jpg')],
        [false, false],
      )
      await assert.rejects(remove('/app/nonexistent.txt'), {
        message: 'File not found: /app/nonexistent.txt',
        code: 'file_not_found',
      })
      assert.equal(await readFile('/app/package.json'), PACKAGE)
    },
  }
}
