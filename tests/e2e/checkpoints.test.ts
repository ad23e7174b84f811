// Restores in any order, and long chains of states; where layers are stacked, stacks that are made flat on the way.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failsWith, say } from '../support/shell.ts'
import { type Suite, startSuite } from '../support/suite.ts'
import { assertTree, changeTree, newSeed, plantTree } from '../support/tree.ts'

const suite = await startSuite()
const copying = await startSuite({ env: { ISLET_STORAGE: 'copy' } })
/** More than lie on each other before they are made one. */
const GENERATIONS = 18

test('a restore to any of ten checkpoints, in any order, gives exactly its files, store and env', async () => {
  await using sandbox = await suite.create()
  await plantTree(sandbox)
  const seed = newSeed()
  const saved: { id: string; hash: string; step: number }[] = []
  for (let step = 0; step < 10; step++) {
    const hash = await changeTree(sandbox, 40, `${seed} ${step}`)
    await sandbox.store.batch([
      { op: 'set', key: 'step', value: step },
      { op: 'set', key: `only-${step}`, value: { step } },
      { op: 'delete', key: `only-${step - 1}` },
    ])
    await sandbox.update({ env: { STEP: String(step), [`ONLY_${step}`]: 'set', [`ONLY_${step - 1}`]: null } })
    const { id, memory } = await sandbox.createCheckpoint(`step ${step}`)
    assert.equal(memory, false)
    saved.push({ id, hash, step })
  }
  assert.equal(new Set(saved.map(({ hash }) => hash)).size, 10)
  const order = [...saved, saved[3]!, saved[3]!].sort(() => Math.random() - 0.5)
  for (const { id, hash, step } of order) {
    await changeTree(sandbox, 5, `${seed} before ${step}`)
    const restored = await sandbox.restoreCheckpoint(id)
    const text = `seed ${seed}, order ${order.map((each) => each.step)}, at ${step}`
    await assertTree(sandbox, hash, text)
    assert.deepEqual(
      Object.keys(restored.sandbox.env).filter((name) => /^(STEP|ONLY)/.test(name)),
      ['STEP', `ONLY_${step}`],
      text,
    )
    assert.equal(await say(sandbox, 'echo $STEP'), String(step), text)
    assert.deepEqual((await sandbox.store.list()).keys.sort(), [`only-${step}`, 'step'], text)
    assert.equal((await sandbox.store.get('step')).value, step, text)
  }
})

for (const [title, suiteOf, links] of [
  ['cloned', suite, true],
  ['stacked', copying, false],
] as const) {
  test(`a long chain of states is right in every generation where layers are ${title}`, () =>
    checkChain(suiteOf, links))
}

async function checkChain(suiteOf: Suite, links: boolean): Promise<void> {
  const { islet } = suiteOf
  const seed = newSeed()
  let current = await suiteOf.create()
  await plantTree(current, { links })
  for (let generation = 0; generation < GENERATIONS; generation++) {
    const hash = await changeTree(current, 25, `${seed} ${generation}`)
    const { id } = await current.createCheckpoint(`generation ${generation}`)
    if (generation % 2 === 0) {
      await changeTree(current, 3, `${seed} after ${generation}`)
      await current.restoreCheckpoint(id)
    } else {
      const next = await islet.checkpoints.createSandbox(id)
      await current.kill()
      await islet.checkpoints.delete(id)
      current = next
    }
    await assertTree(current, hash, `seed ${seed}, generation ${generation}`)
  }
  await current.kill()
}

test('a paused sandbox is saved as it stands and stays paused', async () => {
  await using sandbox = await suite.create()
  await plantTree(sandbox)
  const seed = newSeed()
  const hash = await changeTree(sandbox, 40, seed)
  await sandbox.pause()
  const { id, frozenMs } = await sandbox.createCheckpoint('paused')
  assert.equal(frozenMs, 0)
  assert.equal((await sandbox.getInfo()).status, 'paused')
  await using copy = await suite.islet.checkpoints.createSandbox(id)
  await assertTree(copy, hash, `seed ${seed}`)
  assert.equal((await sandbox.restoreCheckpoint(id)).sandbox.status, 'running')
  await assertTree(sandbox, hash, `seed ${seed}`)
})

test('a copy has the limits it was given, and its own disk to fill', async () => {
  await using sandbox = await suite.create({ resources: { disk: '64Mi', memory: '256Mi' } })
  await say(sandbox, 'head -c 40000000 /dev/urandom > /workspace/large')
  const { id } = await sandbox.createCheckpoint('half full')
  const { diskLimit } = (await suite.islet.info()).storage
  await using copy = await suite.islet.checkpoints.createSandbox(id, { resources: { memory: '128Mi' } })
  const { resources } = await copy.getInfo()
  assert.deepEqual([resources.diskBytes, resources.memoryBytes], [64 * 1024 ** 2, 128 * 1024 ** 2])
  const fill = await copy.exec.run('head -c 100000000 /dev/zero | tr "\\0" x > /workspace/more')
  if (diskLimit) assert.notEqual(fill.exitCode, 0)
  await failsWith(suite.islet.checkpoints.createSandbox(id, { user: 'no-such-user' }), 'user_not_found')
})
