import assert from 'node:assert/strict'
import type { Programs } from '../seeds.ts'
import type { World } from './world.ts'

export function filePrograms({ sandbox }: World): Programs {
  const { file } = sandbox
  return {
    'create makes a file and says what it is': async () => {
      const { modified_at, ...made } = await file.create('/project/hello.txt', 'Hello, World!')
      assert.deepEqual(made, { name: 'hello.txt', path: '/project/hello.txt', size: 13, is_dir: false })
      assert.equal(new Date(modified_at).toISOString(), modified_at)
      assert.equal((await file.create('/project/empty.txt')).size, 0)
      const config = JSON.stringify({ timeout: 5000 }, null, 2)
      assert.equal((await file.create('/project/config.json', config)).name, 'config.json')
      await file.create('/project/start.sh', '#!/bin/bash\necho "Starting application..."\nnpm start\n')
      await assert.rejects(file.create('/project/hello.txt/below', ''), { code: 'not_a_directory' })
    },
    'list gives the entries of a directory, by default the root': async () => {
      await file.create('/project/src/app.ts', '')
      const all = await file.list('/project')
      assert.deepEqual(
        all.map(({ name, is_dir }) => `${name}${is_dir ? '/' : ''}`),
        ['config.json', 'empty.txt', 'hello.txt', 'src/', 'start.sh'],
      )
      assert.equal(all.find(({ name }) => name === 'hello.txt')?.size, 13)
      const root = await file.list()
      assert.ok(root.some(({ path, is_dir }) => path === '/project' && is_dir))
      assert.deepEqual(
        root.map(({ name }) => name),
        (await file.list('/')).map(({ name }) => name),
      )
      await sandbox.filesystem.mkdir('/project/temp')
      assert.deepEqual(await file.list('/project/temp'), [])
      assert.equal(await file.exists('/project/optional-data'), false)
      await assert.rejects(file.list('/project/optional-data'), {
        message: 'Directory not found: /project/optional-data',
      })
    },
    'retrieve gives the content of a file': async () => {
      assert.equal(await file.retrieve('/project/hello.txt'), 'Hello, World!')
      assert.match(await file.retrieve('/project/start.sh'), /^#!\/bin\/bash\n[\s\S]*\nnpm start\n$/)
      assert.equal(JSON.parse(await file.retrieve('/project/config.json')).timeout, 5000)
      await assert.rejects(file.retrieve('/project/missing'), { message: 'File not found: /project/missing' })
    },
    'destroy removes files and whole directories': async () => {
      await file.create('/project/temp.txt', 'temporary data')
      await file.destroy('/project/temp.txt')
      assert.equal(await file.exists('/project/temp.txt'), false)
      await file.create('/project/cache/images/thumb.jpg', 'image')
      await file.create('/project/cache/data.json', '{}')
      await file.destroy('/project/cache')
      assert.equal(await file.exists('/project/cache'), false)
      assert.equal(await file.exists('/project/optional-file.txt'), false)
      await assert.rejects(file.destroy('/project/optional-file.txt'), {
        message: 'File not found: /project/optional-file.txt',
      })
    },
    'batchWrite writes and deletes, each with a result, the last operation on a path last': async () => {
      const written = await file.batchWrite([
        { path: '/project/b.txt', operation: 'write', content: 'B' },
        { path: '/project/a.txt', operation: 'write', content: 'A' },
      ])
      assert.deepEqual(
        written.map(({ path, success, file: made }) => [path, success, made?.name, made?.size, made?.is_dir]),
        [
          ['/project/a.txt', true, 'a.txt', 1, false],
          ['/project/b.txt', true, 'b.txt', 1, false],
        ],
      )
      const mixed = await file.batchWrite([
        { path: '/project/new.txt', operation: 'write', content: 'New file' },
        { path: '/project/a.txt', operation: 'delete' },
        { path: '/project/b.txt', operation: 'write', content: 'Updated content' },
        { path: '/project/never-there.txt', operation: 'delete' },
      ])
      const outcome = mixed.map(({ path, success, error }) => [
        path.slice('/project/'.length),
        success,
        typeof error,
      ])
      assert.deepEqual(outcome, [
        ['a.txt', true, 'undefined'],
        ['b.txt', true, 'undefined'],
        ['never-there.txt', false, 'string'],
        ['new.txt', true, 'undefined'],
      ])
      assert.deepEqual(
        [await file.exists('/project/a.txt'), await file.retrieve('/project/b.txt')],
        [false, 'Updated content'],
      )
      const same = ['First', 'Second', 'Final'].map((content) => ({
        path: '/project/config.txt',
        operation: 'write' as const,
        content: `${content} version`,
      }))
      assert.equal((await file.batchWrite(same)).length, 1)
      assert.equal(await file.retrieve('/project/config.txt'), 'Final version')
    },
    'exists is true for files and directories': async () => {
      const paths = ['/project/hello.txt', '/project/src', '/project/nonexistent.txt', '']
      assert.deepEqual(await Promise.all(paths.map((path) => file.exists(path))), [true, true, false, false])
      const output = '/project/report.txt'
      if (!(await file.exists(output))) await file.create(output, 'New report content')
      if (!(await file.exists(output))) assert.fail('it exists')
      assert.equal(await file.retrieve(output), 'New report content')
    },
  }
}
