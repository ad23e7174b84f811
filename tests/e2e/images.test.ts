// Images from what a client has: a directory or a tar of its machine goes to the server as an upload. A path of the server's machine is
// refused unless its operator allows it.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { copyProgram } from '../support/programs.ts'
import { ISLET } from '../support/server.ts'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const { server, islet } = await startSuite()
const scratch = mkdtempSync(join(tmpdir(), 'islet-images-'))
after(() => rmSync(scratch, { recursive: true }))

const directory = join(scratch, 'root')
const tar = join(scratch, 'root.tar.gz')
copyProgram('/bin/sh', directory)
writeFileSync(join(directory, 'mark'), 'ours\n')
execFileSync('tar', ['-czf', tar, '-C', directory, '.'])

async function marked(runtime: string): Promise<string> {
  await using sandbox = await islet.sandboxes.create({ runtime })
  return await say(sandbox, 'read -r word < /mark; echo $word')
}

for (const [kind, path] of Object.entries({ directory, tar }))
  test(`islet image import makes an image from a ${kind} of the client's machine`, async () => {
    const words = [ISLET, 'image', 'import', path, '--name', `from-${kind}`, '--json']
    const { stdout } = await promisify(execFile)(process.execPath, words, { env: server.clientEnv })
    assert.ok(JSON.parse(stdout).runtimes.includes(`from-${kind}`), stdout)
    assert.equal(await marked(`from-${kind}`), 'ours')
  })

test('the SDK uploads a tar', async () => {
  const steps: string[] = []
  const image = await islet.images.upload('from-sdk', readFileSync(tar), {
    onProgress: ({ stage }) => void steps.push(stage),
  })
  assert.ok(image.runtimes.includes('from-sdk'))
  assert.ok(steps.length > 0)
  assert.equal(await marked('from-sdk'), 'ours')
})

test("a path of the server's machine is refused by default, with the way to go", async () => {
  const body = { kind: 'directory', path: directory, name: 'by-path' }
  const response = await server.post('/v1/images/import', body)
  const { error } = (await response.json()) as { error: { code: string; hint: string } }
  assert.deepEqual([response.status, error.code], [403, 'forbidden'])
  assert.match(error.hint, /islet image import PATH --name NAME.*ISLET_IMPORT_DIRS/)
})
