// Copies of a sandbox with 5,000 changed files of 50 MB: the same inside, and each one a sandbox of its own.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { type Sandbox, Sandbox as Sandboxes } from 'islet'
import { failsWith, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'
import { assertTree, changeTree, fillTree, hashArchive, newSeed, plantTree } from '../support/tree.ts'

const suite = await startSuite()
const FORKS = 10

let parent: Sandbox
let hash: string
before(async () => {
  parent = await suite.create({ env: { ROLE: 'parent', KEPT: 'yes' }, metadata: { job: '7' } })
  await plantTree(parent)
  await fillTree(parent, 5000, 50_000_000)
  hash = await hashArchive(parent)
  await parent.store.set('config', { value: { deep: [1, 2, { three: 3 }] } })
})

async function forked(from: Sandbox, options: { count: number; env?: Record<string, string> }) {
  const results = await from.fork(options)
  assert.ok(results.frozenMs > 0)
  return results.map((result) => {
    if (!result.ok) throw result.error
    return result.sandbox
  })
}

test('ten forks at once have exactly the files, store and env of their parent, and their own identity', async () => {
  const children = await forked(parent, { count: FORKS, env: { ROLE: 'child' } })
  const look = 'cat /proc/self/uid_map /etc/machine-id /etc/hostname; hostname; echo $ROLE $KEPT'
  const all = await Promise.all([parent, ...children].map((each) => say(each, look)))
  const seen = all.map((text) => text.trim().split(/\s+/))
  for (const at of [1, 3, 4]) assert.equal(new Set(seen.map((words) => words[at])).size, FORKS + 1, `${at}`)
  assert.deepEqual(
    seen.slice(1).map((words) => words.slice(4)),
    children.map(({ id }) => [id, id, 'child', 'yes']),
  )
  const hashes = await Promise.all(children.map(hashArchive))
  assert.deepEqual(
    hashes,
    children.map(() => hash),
  )
  for (const child of children) {
    assert.deepEqual((await child.store.get('config')).value, { deep: [1, 2, { three: 3 }] })
    const { origin, metadata } = await child.getInfo()
    assert.deepEqual([origin, metadata], [{ kind: 'fork', id: parent.id }, { job: '7' }])
  }
  await checkTokens(children.slice(0, 2))
  await checkApart(children.slice(0, 2))
  await Promise.all(children.map((child) => child.kill()))
  assert.equal(await hashArchive(parent), hash)
})

/** Each reaches its own sandbox and no other. */
async function checkTokens(children: Sandbox[]): Promise<void> {
  const { url } = suite.server
  for (const child of children) {
    const { token } = await child.getToken()
    assert.equal(await say(await Sandboxes.connect(child.id, { url, token }), 'hostname'), child.id)
    for (const other of [parent, ...children].filter(({ id }) => id !== child.id))
      await failsWith(Sandboxes.connect(other.id, { url, token }), 'forbidden')
  }
}

/** A file that one sandbox writes is not seen by the others. */
async function checkApart([first, second]: Sandbox[]): Promise<void> {
  await say(first!, 'cd /workspace/tree && rm -r 7 && mv 8 7 && echo more >> 9/900', { user: 'root' })
  await first!.store.set('config', { value: 'changed' })
  await first!.update({ env: { KEPT: 'no' } })
  assert.equal(await hashArchive(second!), hash)
  assert.deepEqual((await second!.store.get('config')).value, { deep: [1, 2, { three: 3 }] })
  assert.equal(await say(second!, 'echo $KEPT'), 'yes')
}

test('a fork of a fork of a fork is right when those before it are gone', async () => {
  let current = await suite.create()
  await plantTree(current)
  const seed = newSeed()
  for (let depth = 0; depth < 4; depth++) {
    const changed = await changeTree(current, 40, `${seed} ${depth}`)
    const [next] = await forked(current, { count: 1 })
    await current.kill()
    await assertTree(next!, changed, `seed ${seed}, depth ${depth}`)
    current = next!
  }
  await current.kill()
})

test('a fork knows who it is wherever its /etc leads', async () => {
  await using odd = await suite.create()
  await say(odd, 'mv /etc /names && ln -s /names /etc && ln -sf /home/user/elsewhere /names/hosts', {
    user: 'root',
  })
  const [child] = await forked(odd, { count: 1 })
  const { id } = child!
  const shown = await say(
    child!,
    'cat /names/hostname; grep -c "$(hostname)" /etc/hosts; test ! -e elsewhere && readlink /etc',
  )
  assert.equal(shown, `${id}\n1\n/names`)
  await child!.kill()
})

test('an only fork has the files of its parent and a limit of its own, and each goes its own way', async (context) => {
  const { storage } = await suite.islet.info()
  if (!storage.diskLimit) return context.skip('this storage has no limits')
  await using small = await suite.create({ resources: { disk: '64Mi' } })
  await say(small, 'echo theirs > /workspace/file')
  await using child = await small.fork({ resources: { disk: '256Mi' } })
  await say(child, 'head -c 100M /dev/urandom > /workspace/large; echo mine > /workspace/file')
  assert.equal(await say(small, 'cat /workspace/file; ls /workspace'), 'theirs\nfile')
  await using tiny = await child.fork({ resources: { disk: '32Mi' } })
  assert.equal(await say(tiny, 'cat /workspace/file; stat -c %s /workspace/large'), `mine\n${100 * 2 ** 20}`)
  assert.match(
    (await tiny.exec.run('head -c 100M /dev/urandom > /workspace/more')).stderr,
    /No space left|quota/i,
  )
  await child.kill()
  assert.equal(await say(tiny, 'cat /workspace/file'), 'mine')
})

test('a command that runs in the parent keeps running, and does not run in the fork', async () => {
  await using source = await suite.create()
  const running = source.exec.run('while [ ! -e /tmp/stop ]; do echo >> /tmp/count; done; wc -l < /tmp/count')
  running.catch(() => {})
  const counted = async (from: Sandbox) => Number(await say(from, 'wc -l < /tmp/count || echo 0'))
  while ((await counted(source)) === 0);
  await using child = await source.fork()
  const [before, inChild] = [await counted(source), await counted(child)]
  assert.ok(inChild > 0 && inChild <= before, `${inChild} of ${before}`)
  assert.equal(await counted(child), inChild)
  while ((await counted(source)) === before);
  await say(source, 'touch /tmp/stop')
  const { exitCode, stdout } = await running
  assert.deepEqual([exitCode, Number(stdout) > before], [0, true])
})

test('services run again in a fork, and those of the parent are not disturbed', async () => {
  await using source = await suite.create()
  await source.service.start({ name: 'web', start: 'echo $$ >> /workspace/starts; exec sleep 600' })
  const { pid } = await source.service.waitFor('web', 'running')
  await using child = await source.fork()
  assert.equal((await child.service.waitFor('web', 'running')).status, 'running')
  assert.equal((await source.service.retrieve('web')).pid, pid)
  while ((await say(child, 'wc -l < /workspace/starts')) !== '2');
  assert.equal(await say(source, 'wc -l < /workspace/starts'), '1')
})
