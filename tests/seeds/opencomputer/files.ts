import assert from 'node:assert/strict'
import type { Programs } from '../seeds.ts'
import type { World } from './world.ts'

export function filesPrograms({ sandbox }: World): Programs {
  const { files } = sandbox
  return {
    'files are written from text and bytes, and read as both': async () => {
      await files.write('/tmp/deep/down/note.txt', 'grüße')
      assert.equal(await files.read('/tmp/deep/down/note.txt'), 'grüße')
      await files.write('/tmp/bytes', Uint8Array.of(0, 255, 10))
      assert.deepEqual(await files.readBytes('/tmp/bytes'), Uint8Array.of(0, 255, 10))
      await assert.rejects(files.read('/nothing/here'), {
        message: /^Failed to read \/nothing\/here: 404 file not found/,
        code: 'file_not_found',
      })
      await assert.rejects(files.write('/tmp/bytes/below', ''), {
        message: /^Failed to write \/tmp\/bytes\/below: 4/,
      })
    },
    'directories are made with their parents and listed, by default the root': async () => {
      await files.makeDir('/tmp/a/b/c')
      await files.makeDir('/tmp/a/b/c')
      await files.write('/tmp/a/five', '12345')
      const [b, five] = await files.list('/tmp/a')
      assert.deepEqual([b?.name, b?.isDir, b?.path], ['b', true, '/tmp/a/b'])
      assert.deepEqual(five, { name: 'five', isDir: false, path: '/tmp/a/five', size: 5 })
      assert.ok((await files.list()).some(({ path, isDir }) => path === '/tmp' && isDir))
      await assert.rejects(files.list('/nothing'), { message: /^Failed to list \/nothing: 404 / })
      await assert.rejects(files.makeDir('/tmp/a/five'), { message: /^Failed to mkdir \/tmp\/a\/five: 4/ })
    },
    'files and directories are removed, and exists tells without throwing': async () => {
      await files.write('/tmp/gone/file', '')
      assert.deepEqual([await files.exists('/tmp/gone/file'), await files.exists('/tmp/gone')], [true, true])
      await files.remove('/tmp/gone')
      await files.remove('/tmp/gone')
      assert.equal(await files.exists('/tmp/gone/file'), false)
      assert.equal(await files.exists('/nothing/here'), false)
      await assert.rejects(files.remove(''), { message: /^Failed to remove : 400 / })
    },
  }
}
