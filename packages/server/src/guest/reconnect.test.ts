// The connection between the link and the real guest is cut through a proxy, again and again: nothing is lost, nothing
// comes twice.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { rm, stat } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OutputSink } from './guest.ts'
import { Collector, openLink, RawGuest, rejection, spec, startGuest } from './testing.ts'

const MEGABYTE = 1_000_000

test('50 MB of output of several processes survive a storm of cut connections', async (t) => {
  const { link, cutting } = await openCut(t)
  const sizes = [20, 15, 10, 5]
  const storm = cutting(3, 40)
  const results = await Promise.all(
    sizes.map(async (size, i) => {
      const sink = new HashSink(i % 2 === 1)
      const program = `yes islet-${i}-0123456789 | head -c ${size * MEGABYTE}; printf end >&2`
      const process = await link.spawn(spec(['sh', '-c', program]), sink)
      const exit = await process.exited
      process.forget()
      return { exit, sink }
    }),
  )
  const cuts = await storm.stop()
  t.diagnostic(`${cuts} cuts`)
  assert.ok(cuts > 3)
  for (const [i, { exit, sink }] of results.entries()) {
    const bytes = sizes[i]! * MEGABYTE
    assert.equal(exit.code, 0)
    assert.equal(exit.outputEnd, bytes + 3)
    assert.equal(sink.end, bytes + 3)
    assert.equal(sink.stderr, 'end')
    const line = `islet-${i}-0123456789\n`
    const expected = line.repeat(Math.ceil(bytes / line.length)).slice(0, bytes)
    assert.equal(sink.digest(), createHash('sha256').update(expected).digest('hex'))
  }
})

test('stdin survives a storm of cut connections', async (t) => {
  const { link, cutting } = await openCut(t)
  const sink = new HashSink(false)
  const process = await link.spawn(spec(['cat'], { stdin: true }), sink)
  const storm = cutting(2, 25)
  const sent = createHash('sha256')
  for (let i = 0; i < 200; i++) {
    const chunk = Buffer.alloc(1 + ((i * 7919) % 60_000), `chunk ${i} `)
    sent.update(chunk)
    await process.writeStdin(chunk)
  }
  await process.endStdin()
  assert.equal((await process.exited).code, 0)
  await storm.stop()
  process.forget()
  assert.equal(sink.digest(), sent.digest('hex'))
})

test('processes that are started, ended and forgotten in a storm run exactly once', async (t) => {
  const { link, directory, cutting } = await openCut(t)
  const storm = cutting(1, 12)
  const count = 60
  const runs = Array.from({ length: count }, async (_, i) => {
    const sink = new Collector()
    const file = join(directory, `run-${i}`)
    const process = await link.spawn(spec(['sh', '-c', `echo ran >> ${file}; echo done`]), sink)
    const exit = await process.exited
    process.forget()
    return { exit, sink, size: (await stat(file)).size }
  })
  for (const { exit, sink, size } of await Promise.all(runs)) {
    assert.equal(exit.code, 0)
    assert.equal(sink.stdout, 'done\n')
    assert.equal(size, 4)
  }
  await storm.stop()
  await link.ready()
  await link.ping()
  assert.deepEqual(await link.processes(), [])
})

test('reads are sent again on the next connection, changes are not', async (t) => {
  const { link, socketPath } = await openLink(t)
  const first = await RawGuest.greet(t, socketPath)
  const stated = link.stat('/a')
  const made = rejection(link.mkdir('/b'))
  await first.expect('STAT')
  await first.expect('MKDIR')
  first.socket.destroy()
  assert.equal((await made).code, 'sandbox_lost')
  const second = await RawGuest.greet(t, socketPath)
  const { stream } = await second.expect('STAT')
  second.send('OK', stream, { entry: [{ path: '/a', type: 1 }] })
  assert.equal((await stated).path, '/a')
})

test('a spawn that was under way is looked for, and sent again only when the guest never got it', async (t) => {
  const { link, socketPath } = await openLink(t)
  const first = await RawGuest.greet(t, socketPath)
  const arrived = link.spawn(spec(['a'], { id: 'arrived' }), new Collector())
  const missed = link.spawn(spec(['b'], { id: 'missed' }), new Collector())
  await first.expect('SPAWN')
  await first.expect('SPAWN')
  first.socket.destroy()
  const second = await RawGuest.greet(t, socketPath)
  const one = await second.expect('ATTACH')
  const two = await second.expect('ATTACH')
  assert.deepEqual([one.fields.id, two.fields.id], ['arrived', 'missed'])
  second.send('ATTACHED', one.stream, { process: { id: 'arrived', pid: 7, running: 1 } })
  second.send('ERROR', two.stream, { kind: 12 })
  const again = await second.expect('SPAWN')
  assert.equal(again.fields.id, 'missed')
  second.send('SPAWNED', again.stream, { pid: 8 })
  assert.equal((await arrived).pid, 7)
  assert.equal((await missed).pid, 8)
})

test('when another guest connects, the processes of the first are lost and the link goes on', async (t) => {
  const { link, socketPath } = await openLink(t)
  const replaced: boolean[] = []
  link.events.on('connect', (event) => replaced.push(event.replaced))
  const first = await RawGuest.greet(t, socketPath, 'boot-1')
  const spawning = link.spawn(spec(['a']), new Collector())
  first.send('SPAWNED', (await first.expect('SPAWN')).stream, { pid: 7 })
  const { exited } = await spawning
  first.socket.destroy()
  const second = await RawGuest.greet(t, socketPath, 'boot-2')
  assert.equal((await rejection(exited)).code, 'sandbox_lost')
  assert.deepEqual(replaced, [false, true])
  const pong = link.ping()
  second.send('PONG', 0, (await second.expect('PING')).payload)
  await pong
})

test('a sink that is slow while the connection is cut gets each byte once', async (t) => {
  const { link, socketPath } = await openLink(t)
  const first = await RawGuest.greet(t, socketPath)
  const release: (() => void)[] = []
  const taken: string[] = []
  const sink: OutputSink = {
    write(_channel, bytes, offset) {
      taken.push(`${offset}:${bytes}`)
      return new Promise((resolve) => release.push(resolve))
    },
  }
  const spawning = link.spawn(spec(['a'], { id: 'p' }), sink)
  const { stream } = await first.expect('SPAWN')
  first.send('SPAWNED', stream, { pid: 7 })
  first.output(stream, 1, 0, Buffer.from('abc'))
  first.output(stream, 1, 3, Buffer.from('def'))
  const { exited } = await spawning
  first.socket.destroy()
  const second = await RawGuest.greet(t, socketPath)
  release.shift()!()
  const attach = await second.expect('ATTACH')
  assert.equal(attach.fields.offset, 3)
  const state = { id: 'p', pid: 7, running: 0, outputStart: 3, outputEnd: 6 }
  second.send('ATTACHED', attach.stream, { process: state })
  second.output(attach.stream, 1, 3, Buffer.from('def'))
  second.send('EXITED', attach.stream, { code: 0, outputEnd: 6 })
  while (release.length === 0) await sleep(1)
  release.shift()!()
  assert.equal((await exited).code, 0)
  assert.deepEqual(taken, ['0:abc', '3:def'])
})

test('a request made while the guest is not connected waits for it, up to a deadline', async (t) => {
  const { link, socketPath } = await openLink(t, { awayTimeoutMs: 40 })
  assert.equal((await rejection(link.stat('/a'))).code, 'timeout')
  assert.equal((await rejection(link.spawn(spec(['a']), new Collector()))).code, 'timeout')
  const waiting = link.ports()
  const guest = await RawGuest.greet(t, socketPath)
  guest.send('OK', (await guest.expect('PORTS')).stream, { port: [{ port: 80, address: '::', uid: 1 }] })
  assert.deepEqual(await waiting, [{ port: 80, address: '::', uid: 1 }])
})

class HashSink extends Collector {
  readonly #hash = createHash('sha256')
  readonly #slow: boolean

  constructor(slow: boolean) {
    super()
    this.#slow = slow
  }

  override write(channel: 'stdout' | 'stderr', bytes: Buffer, offset: number): void | Promise<void> {
    if (channel === 'stderr') {
      super.write(channel, bytes, offset)
      return
    }
    assert.equal(offset, this.end)
    this.end += bytes.length
    this.#hash.update(bytes)
    if (this.#slow) return new Promise((resolve) => setImmediate(resolve))
  }

  digest(): string {
    return this.#hash.digest('hex')
  }
}

/** A link and the real guest with a proxy between them that can be cut. */
async function openCut(t: TestContext) {
  const opened = await openLink(t)
  const proxyPath = join(opened.directory, 'proxy.sock')
  const sockets = new Set<Socket>()
  const proxy = createServer((near) => {
    const far = connect(opened.socketPath)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  proxy.listen(proxyPath)
  await once(proxy, 'listening')
  const cut = () => {
    for (const socket of [...sockets]) socket.destroy()
  }
  t.after(async () => {
    proxy.close()
    cut()
    await rm(proxyPath, { force: true })
  })
  startGuest(t, proxyPath)
  await opened.link.ready({ timeoutMs: 5000 })
  const cutting = (fromMs: number, toMs: number) => {
    const stop = new AbortController()
    const done = (async () => {
      let cuts = 0
      while (!stop.signal.aborted) {
        await sleep(fromMs + Math.random() * (toMs - fromMs))
        if (stop.signal.aborted || !opened.link.connected) continue
        cut()
        cuts++
      }
      return cuts
    })()
    return {
      stop() {
        stop.abort()
        return done
      },
    }
  }
  return { ...opened, cutting }
}
