import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertNoLeak, crashDuring, MOMENTS, withServer } from './crash.ts'

const SIZE = 8 * 1024 * 1024

test('a file is as before or as written, never in between, and no temporary file stays', async () => {
  await withServer(async (server) => {
    const { id } = await server.islet().sandboxes.create()
    let before = 'a'
    for (const [index, moment] of MOMENTS.entries()) {
      const sandbox = await server.islet().sandboxes.connect(id)
      const next = String.fromCharCode(98 + index)
      const written = await crashDuring(server, moment, () =>
        sandbox.files.write('data/file', next.repeat(SIZE)),
      )
      const again = await server.islet().sandboxes.connect(id)
      if (await again.files.exists('data/file')) {
        const content = await again.files.read('data/file')
        assert.equal(content.length, SIZE)
        assert.equal(content, content[0]!.repeat(SIZE))
        assert.ok(written ? content[0] === next : [before, next].includes(content[0]!))
        before = content[0]!
        const { stdout } = await again.exec.run('ls -A data')
        assert.equal(stdout, 'file\n')
      } else {
        assert.equal(written, undefined)
        assert.equal(before, 'a')
      }
    }
    await assertNoLeak(server)
  })
})
