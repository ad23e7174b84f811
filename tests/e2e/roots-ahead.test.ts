// Cells that wait with a root: a create with another root gets that root, and unused layers are removed.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, mkdtempDisposable, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { CreateOptions, Sandbox } from 'islet'
import { heldBy } from '../support/held.ts'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'
import { cellsDirectory, cellsOf, warm } from '../support/warm.ts'

const suite = await startSuite({
  env: { ISLET_WARM_MIN: '2', ISLET_WARM_MAX: '2', ISLET_IMPORT_DIRS: tmpdir() },
})
const stacked = await startSuite({ env: { ISLET_WARM_MIN: '2', ISLET_WARM_MAX: '2', ISLET_STORAGE: 'copy' } })
const { islet, server } = suite

/** The properties of a sandbox that its root determines. */
const LOOK =
  'hostname; cat /etc/hostname; df -B1 --output=size /dev/shm | tail -1 | tr -d " "; ls /sys/class/net; ls -A /workspace'

test('a create that was not expected still gets the requested root, again and again', async () => {
  const asked: [CreateOptions, string[]][] = [
    [{}, ['lo']],
    [{ resources: { memory: '128Mi' } }, ['lo']],
    [{ network: { enabled: true } }, ['eth0', 'lo']],
    [{ network: { port: 3000 } }, ['lo']],
    [{ files: [{ path: '/workspace/note', content: 'x' }] }, ['lo', 'note']],
  ]
  for (const [options, rest] of [...asked, ...asked]) {
    await warm(server)
    await using sandbox = await suite.create(options)
    const halfBytes = (options.resources ? 128 : 1024) * 2 ** 19
    assert.deepEqual((await say(sandbox, LOOK)).split('\n'), [
      sandbox.id,
      sandbox.id,
      `${halfBytes}`,
      ...rest,
    ])
  }
})

test('a cell that waits with a root has it mounted, and its sandbox gets that layer', async () => {
  await suite.create().then((sandbox) => sandbox.kill())
  await warm(server)
  const waiting = rootsAhead()
  assert.ok(waiting.length > 0, 'some wait with a root')
  await using sandbox = await suite.create()
  await say(sandbox, 'echo mine > /workspace/file')
  const taken = waiting.filter((layer) =>
    read(join(server.dataDir, 'pool/layers', layer, 'root/workspace/file')),
  )
  assert.equal(taken.length, 1)
})

test('roots that were not used leave no layer', async () => {
  const source = await suite.create()
  await say(source, 'echo one > /workspace/file')
  const { id } = await source.createCheckpoint('one')
  const made: Sandbox[] = [source]
  for (let round = 0; round < 3; round++) {
    await suite.create().then((sandbox) => sandbox.kill())
    await warm(server)
    made.push(
      ...(await source.fork({ count: 3 })).map((fork) =>
        fork.ok ? fork.sandbox : assert.fail(`${fork.error}`),
      ),
    )
    await source.restoreCheckpoint(id)
  }
  for (const sandbox of made)
    assert.equal(await say(sandbox, 'cat /workspace/file; hostname'), `one\n${sandbox.id}`)
  await Promise.all(made.map((sandbox) => sandbox.kill()))
  await islet.checkpoints.delete(id)
  await warm(server)
  // Two that are empty wait as well.
  await until(() => heldBy(server).layers <= rootsAhead().length + 2)
  assert.equal(heldBy(server).cells, 2)
})

test('an image can be removed although cells wait with it, and be made again', async () => {
  await using tree = await mkdtempDisposable(join(tmpdir(), 'islet-image-'))
  await mkdir(join(tree.path, 'etc'))
  for (const content of ['one', 'one', 'two']) {
    if (read(join(tree.path, 'content')) !== content) await writeFile(join(tree.path, 'content'), content)
    await islet.images.import({ kind: 'directory', path: tree.path, name: 'passing' })
    for (let round = 0; round < 12; round++) {
      await warm(server)
      await using sandbox = await suite.create({ runtime: 'passing' })
      assert.equal(await sandbox.files.read('/content'), content)
    }
    await warm(server)
    await islet.images.remove('passing')
    await islet.images.collect()
    await assert.rejects(suite.create({ runtime: 'passing' }), { code: 'runtime_not_found' })
  }
})

test('an image that is damaged does not hold up the pool', async () => {
  await using tree = await mkdtempDisposable(join(tmpdir(), 'islet-image-'))
  await mkdir(join(tree.path, 'etc'))
  await writeFile(join(tree.path, 'content'), 'to be lost')
  const { name } = await islet.images.import({ kind: 'directory', path: tree.path, name: 'damaged' })
  await warm(server)
  await rm(join(server.dataDir, 'images', name, 'root'), { recursive: true })
  for (let round = 0; round < 3; round++) {
    await assert.rejects(suite.create({ runtime: 'damaged' }), { code: 'engine_unavailable' })
    await warm(server)
  }
  assert.ok(!server.output.includes('no cell could be started ahead'))
  await using sandbox = await suite.create()
  assert.equal(await say(sandbox, 'hostname'), sandbox.id)
})

test('with stacked layers, waiting roots are removed before the layers below them', async () => {
  const source = await stacked.create()
  await say(source, 'echo saved > /workspace/file')
  const { id } = await source.createSnapshot({ tag: 'below' })
  await source.kill()
  // As often as the pool remembers: then nothing else is expected, and what waits anew waits for this.
  let before = new Set<string>()
  for (let round = 0; round < 16; round++) {
    await warm(stacked.server)
    before = new Set(rootsAhead(stacked))
    await using sandbox = await stacked.islet.sandboxes.create({ snapshot: 'below' })
    assert.equal(await say(sandbox, 'cat /workspace/file; hostname'), `saved\n${sandbox.id}`)
  }
  await warm(stacked.server)
  const above = rootsAhead(stacked).filter((layer) => !before.has(layer))
  assert.ok(above.length > 0, 'some wait with a root on it')
  await stacked.islet.snapshots.delete(id)
  assert.deepEqual(
    rootsAhead(stacked).filter((layer) => above.includes(layer)),
    [],
  )
  await until(() => globSync(join(stacked.server.dataDir, 'pool/layers/*/root/workspace/file')).length === 0)
  await warm(stacked.server)
  await using sandbox = await stacked.create()
  assert.equal(await say(sandbox, 'ls -A /workspace; hostname'), sandbox.id)
})

async function until(isSo: () => boolean): Promise<void> {
  for (let left = 1_000; !isSo(); left--) {
    assert.ok(left > 0, `${isSo} within 20 s`)
    await setTimeout(20)
  }
}

/** The layers of the roots with which cells wait. */
function rootsAhead({ server } = suite): string[] {
  return cellsOf(server).flatMap((id) => {
    const record = read(join(cellsDirectory(server), id, 'cell.json'))
    return (record && JSON.parse(record).layer) ?? []
  })
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
