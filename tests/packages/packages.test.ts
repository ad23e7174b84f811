// What a user installs: the tarballs of `npm run pack` in empty directories, without this repository and without a compiler.
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { cleanEnv } from '../support/server.ts'
import { Packed, say, withoutCompilers } from './packed.ts'

const packed = await Packed.make()
after(() => packed[Symbol.asyncDispose]())
const OLD_NODE = '22.13.1'

test('the package islet installs globally and runs a sandbox without a compiler, on the oldest Node it names and by handing over on an older one', async () => {
  const prefix = await packed.global()
  const nodes = await packed.project('nodes', [
    `old@npm:node-linux-${process.arch}@20`,
    `oldest@npm:node-linux-${process.arch}@${OLD_NODE}`,
  ])
  const path = withoutCompilers(join(packed.directory, 'bin'))
  const dataDir = join(packed.directory, 'data')
  mkdirSync(dataDir)
  const env = { ...cleanEnv(), PATH: path, ISLET_DATA_DIR: dataDir, ISLET_WARM_MAX: '0' }
  for (const name of ['old', 'oldest']) {
    const node = join(nodes, 'node_modules', name, 'bin/node')
    const islet = (...args: string[]) =>
      say(node, [join(prefix, 'bin/islet'), ...args], { cwd: packed.directory, env })
    assert.equal(await islet('run', '--', 'python3', '-c', 'print(6*7)'), '42\n', name)
    assert.match(await islet('setup', '--print'), /^((?!gcc|make|libc6-dev).)*$/)
  }
})
