import assert from 'node:assert/strict'
import type { Sandbox } from 'islet'
import { failsWith } from '../../support/shell.ts'
import type { Rows } from '../rows.ts'

export function fileRows(sandbox: Sandbox): Rows {
  const { files } = sandbox
  const run = (command: string) => sandbox.runCommand(command)
  return {
    'filesystem.readFile(path)': async () => {
      await files.write('/tmp/config.txt', 'port=3000\n')
      assert.equal(await files.read('/tmp/config.txt'), 'port=3000\n')
      await failsWith(files.read('/nonexistent.txt'), 'file_not_found')
    },
    'filesystem.writeFile(path, content)': async () => {
      await files.write('/tmp/log.txt', 'First entry')
      await files.write('/tmp/log.txt', 'Second')
      assert.equal(await files.read('/tmp/log.txt'), 'Second')
    },
    'filesystem.mkdir(path)': async () => {
      await files.makeDir('/tmp/data/deep')
      await files.makeDir('/tmp/data/deep')
    },
    'filesystem.readdir(path)': async () => {
      await run('mkdir -p /tmp/dir/src; printf 12345 > /tmp/dir/a; mkdir -p /tmp/dir/empty')
      const entries = (await files.list('/tmp/dir')).map(({ name, type, sizeBytes }) => [
        name,
        type,
        type === 'file' ? sizeBytes : '',
      ])
      assert.deepEqual(entries, [
        ['a', 'file', 5],
        ['empty', 'directory', ''],
        ['src', 'directory', ''],
      ])
      assert.deepEqual(await files.list('/tmp/dir/empty'), [])
      await failsWith(files.list('/nonexistent'), 'file_not_found')
    },
    'filesystem.exists(path)': async () => {
      assert.equal(await files.exists('/tmp/dir/a'), true)
      assert.equal(await files.exists('/tmp/dir'), true)
      assert.equal(await files.exists('/tmp/dir/nothing/at/all'), false)
    },
    'filesystem.remove(path)': async () => {
      await run('mkdir -p /tmp/cache/a/b; touch /tmp/cache/a/b/c')
      await files.remove('/tmp/cache')
      assert.equal(await files.exists('/tmp/cache'), false)
      await failsWith(files.remove('/tmp/cache'), 'file_not_found')
    },
    'file.create(path, content)': async () => {
      const file = await files.write('/tmp/project/hello.txt', 'Hello, World!')
      assert.deepEqual([file.name, file.path, file.sizeBytes], ['hello.txt', '/tmp/project/hello.txt', 13])
      assert.equal((await files.write('/tmp/project/empty.txt', '')).sizeBytes, 0)
    },
    'file.list(path)': async () => {
      assert.ok((await files.list('/')).some(({ name, type }) => name === 'tmp' && type === 'directory'))
    },
    'file.retrieve(path)': async () => {
      assert.equal(await files.read('/tmp/project/hello.txt'), 'Hello, World!')
    },
    'file.destroy(path)': async () => {
      await files.remove('/tmp/project')
      assert.equal(await files.exists('/tmp/project/hello.txt'), false)
    },
    'file.batchWrite(files)': async () => {
      await files.write('/tmp/batch/old.txt', '')
      const results = await files.batchWrite([
        { path: '/tmp/batch/b.txt', operation: 'write', content: 'First version' },
        { path: '/tmp/batch/old.txt', operation: 'delete' },
        { path: '/tmp/batch/a.txt', operation: 'write', content: 'A' },
        { path: '/tmp/batch/missing', operation: 'delete' },
        { path: '/tmp/batch/b.txt', operation: 'write', content: 'Final version' },
      ])
      assert.deepEqual(
        results.map(({ path, success }) => [path.slice('/tmp/batch/'.length), success]),
        [
          ['a.txt', true],
          ['b.txt', true],
          ['missing', false],
          ['old.txt', true],
        ],
      )
      assert.equal(results[1]!.file!.sizeBytes, 'Final version'.length)
      assert.ok(results[2]!.error)
      assert.equal(await files.read('/tmp/batch/b.txt'), 'Final version')
    },
    'file.exists(path)': async () => {
      assert.equal(await files.exists('/tmp/batch/old.txt'), false)
    },
  }
}
