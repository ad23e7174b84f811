// Programs continue after their memory was saved: in the same cell, in another cell, in several cells at once.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, mkdir, readdir, truncate } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Root } from '../engine.ts'
import type { Gaps } from './gaps.ts'
import { type Box, type BoxOptions, bind, boxOf, type Harness, newId, openBox } from './harness.ts'
import { TestLink } from './link.ts'

/** Counts in memory from a number in a file, writes the count to a file, and answers with it on a port. */
const COUNTER = `
import os, socket, threading, time
count = 0
secret = os.urandom(8).hex()
def serve():
    listener = socket.socket(); listener.bind(('127.0.0.1', 7000)); listener.listen()
    while True:
        peer, _ = listener.accept(); peer.sendall(f'{secret} {count}'.encode()); peer.close()
threading.Thread(target=serve, daemon=True).start()
last = time.monotonic()
while not os.path.exists('/tmp/stop'):
    count += 1
    assert time.monotonic() >= last; last = time.monotonic()
    open('/tmp/new', 'w').write(str(count)); os.rename('/tmp/new', '/tmp/count')
    time.sleep(0.02)
print('counted', count)
`
const ASK = [
  '/usr/bin/python3',
  '-c',
  "import socket; s = socket.create_connection(('127.0.0.1', 7000), 10); print(s.recv(100).decode())",
]

export function memory(harness: () => Harness, gaps: Gaps): void {
  const able = gaps.unless('memoryCheckpoint')

  it('goes on in the same cell after its memory was saved', able, async () => {
    await using box = await openBox(harness())
    const counting = box.run(['/usr/bin/python3', '-c', COUNTER])
    const before = await ask(box)
    const { directory } = await save(harness(), box)
    assert.ok((await readdir(directory)).length > 0)
    await thaw(harness(), box)
    const after = await ask(box)
    assert.equal(after.secret, before.secret)
    assert.ok(after.count >= before.count)
    await box.print('touch /tmp/stop')
    assert.match((await counting).output, /^counted \d+\n$/)
  })

  it('goes on in another cell when the first one is gone, with its link and its name', able, async () => {
    const { engine } = harness()
    const box = await openBox(harness(), { hostname: 'sbx-before', network: { enabled: true } })
    const counting = box.run(['/usr/bin/python3', '-c', COUNTER])
    const before = await ask(box)
    const { bootId } = box.link
    const { directory, root } = await save(harness(), box)
    await engine.destroy(box.cell)
    const waiting = box.link.print('echo waited')

    const options = { root, memory: directory, hostname: 'sbx-after', network: { enabled: true } }
    await using woken = await wake(harness(), options, box.link)
    assert.equal(await waiting, 'waited')
    assert.equal(woken.link.bootId, bootId)
    const after = await ask(woken)
    assert.equal(after.secret, before.secret)
    assert.ok(after.count >= before.count)
    assert.equal(await woken.print('cat /proc/sys/kernel/hostname'), 'sbx-after')
    assert.notEqual(woken.bound.address, box.bound.address)
    assert.equal(await ownAddress(woken), woken.bound.address)
    const clock = Number(await woken.print('date +%s'))
    assert.ok(Math.abs(clock - Date.now() / 1000) < 30, `${clock}`)
    await woken.print('touch /tmp/stop')
    assert.match((await counting).output, /^counted \d+\n$/)
  })

  it('goes on in several cells at once, each on its own', able, async () => {
    await using box = await openBox(harness())
    box.run(['/usr/bin/python3', '-c', COUNTER]).catch(() => {})
    const before = await ask(box)
    const { directory, root } = await save(harness(), box)
    const copies = [root, await harness().copyRoot!(root)]
    await thaw(harness(), box)
    const forks = await Promise.all(
      copies.map((copy, i) => wake(harness(), { root: copy, memory: directory, hostname: `sbx-fork-${i}` })),
    )
    await using _one = forks[0]!
    await using _two = forks[1]!
    for (const [i, fork] of forks.entries()) {
      const { secret, count } = await ask(fork)
      assert.equal(secret, before.secret)
      assert.ok(count >= before.count)
      assert.equal(await fork.print('cat /proc/sys/kernel/hostname'), `sbx-fork-${i}`)
      await fork.print(`echo ${i} > /root/mine`)
    }
    await forks[0]!.print('touch /tmp/stop')
    while ((await forks[0]!.run(ASK)).code === 0) await sleep(20)
    for (const alive of [box, forks[1]!]) assert.equal((await ask(alive)).secret, before.secret)
    assert.equal(await forks[1]!.print('cat /root/mine'), '1')
    assert.notEqual((await box.run('cat /root/mine')).code, 0)
    assert.notEqual((await forks[1]!.run('test -e /tmp/stop')).code, 0)
  })

  it('says why memory cannot be saved, and the sandbox lives', able, async () => {
    await using box = await openBox(harness())
    const hold =
      "import os, time; f = open('/root/x', 'w'); os.unlink('/root/x'); open('/root/y', 'w'); time.sleep(1000)"
    box.run(['/usr/bin/python3', '-c', hold]).catch(() => {})
    while ((await box.run('test -e /root/y')).code !== 0) await sleep(20)
    await assert.rejects(save(harness(), box), { code: 'invalid_state', message: /open that was deleted/ })
    await thaw(harness(), box)
    assert.equal(await box.print('echo alive'), 'alive')
  })

  it('says so when memory on disk is damaged, and leaves nothing', able, async () => {
    const { engine } = harness()
    const box = await openBox(harness())
    const { directory, root } = await save(harness(), box)
    await box[Symbol.asyncDispose]()
    for (const name of await readdir(directory)) await truncate(join(directory, name), 100)
    await assert.rejects(wake(harness(), { root, memory: directory }), { code: 'engine_unavailable' })
    assert.equal(await engine.alive(box.cell), false)
  })

  it('says so when a program inside has a connection to the server', able, async () => {
    await using box = await openBox(harness())
    const path = join(box.cell.linkDir, 'inside.sock')
    const server = createServer().listen(path)
    await once(server, 'listening')
    await chmod(path, 0o666)
    const connected = once(server, 'connection')
    const hold =
      "import socket, time; s = socket.socket(socket.AF_UNIX); s.connect('/.islet/inside.sock'); time.sleep(1000)"
    box.run(['/usr/bin/python3', '-c', hold]).catch(() => {})
    const [peer] = (await connected) as [Socket]
    await assert.rejects(save(harness(), box), {
      code: 'invalid_state',
      message: /connection to this server/,
    })
    await thaw(harness(), box)
    assert.equal(await box.print('echo alive'), 'alive')
    peer.destroy()
    await new Promise((resolve) => server.close(resolve))
  })

  it('wakes a sandbox whose server was restarted while it slept', able, async () => {
    const box = await openBox(harness())
    box.run(['/usr/bin/python3', '-c', COUNTER]).catch(() => {})
    const before = await ask(box)
    const { directory, root } = await save(harness(), box)
    await harness().engine.destroy(box.cell)
    await box.link.close()
    const engine = await harness().restart()
    assert.deepEqual(await engine.start(new Map()), new Set())
    await using woken = await wake(harness(), { root, memory: directory })
    const after = await ask(woken)
    assert.equal(after.secret, before.secret)
    assert.ok(after.count >= before.count)
  })
}

async function ask(box: Box): Promise<{ secret: string; count: number }> {
  for (let i = 0; ; i++) {
    const { code, output } = await box.run(ASK)
    const [secret, count] = output.trim().split(' ')
    if (code === 0) return { secret: secret!, count: Number(count) }
    assert.ok(i < 200, output)
    await sleep(20)
  }
}

/** Saves like a checkpoint; afterwards the cell is frozen and its link suspended. */
async function save(harness: Harness, box: Box): Promise<{ directory: string; root: Root }> {
  const directory = join(harness.instance.dataDir, 'memory', newId())
  await mkdir(directory, { recursive: true })
  await box.link.suspend()
  await harness.engine.freeze(box.cell)
  const root = await harness.copyRoot!(box.root)
  await harness.engine.saveMemory(box.cell, directory)
  return { directory, root }
}

async function thaw(harness: Harness, box: Box): Promise<void> {
  await harness.engine.thaw(box.cell)
  await box.link.resume(join(box.cell.linkDir, 'link.sock'))
  await harness.engine.ownSocket(box.cell)
}

async function wake(harness: Harness, options: BoxOptions & { root: Root }, link?: TestLink): Promise<Box> {
  const cell = await harness.engine.allocate(newId())
  const socketPath = join(cell.linkDir, 'link.sock')
  if (link) await link.resume(socketPath)
  else link = await TestLink.listen(socketPath)
  try {
    await harness.engine.prepare(cell)
    const bound = await bind(harness, cell, options)
    await link.ready()
    return boxOf(harness.engine, cell, bound, link, options.root)
  } catch (error) {
    await harness.engine.destroy(cell)
    await link.close()
    throw error
  }
}

async function ownAddress(box: Box): Promise<string> {
  const program = `import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('198.51.100.1', 9)); print(s.getsockname()[0])`
  return box.print(['/usr/bin/python3', '-c', program])
}
