// Clients that come, go and come back while a process prints, on the real wall.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ExecSession, Islet, type SocketConstructor } from 'islet'
import { WebSocket } from 'ws'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite()

/** One client's view: all bytes it was given, in order. */
class Seen {
  readonly #chunks: Uint8Array[] = []
  length = 0

  readonly take = (data: Uint8Array): void => {
    this.#chunks.push(data)
    this.length += data.length
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  async reaches(length: number): Promise<void> {
    while (this.length < length) await sleep(5)
  }
}

const seq = (last: number): Buffer => execFileSync('seq', ['1', `${last}`], { maxBuffer: 1e9 })

test('50 MB reach every client once and in order, also one that left in the middle and came back', async () => {
  await using sandbox = await suite.create()
  const expected = seq(6_400_000)
  assert.ok(expected.length > 50_000_000)
  const [stays, leaves, returns] = [new Seen(), new Seen(), new Seen()]
  const session = await sandbox.exec.start('read go; exec seq 1 6400000', { onStdout: stays.take })
  const second = await sandbox.exec.attach(session.processId, { onStdout: leaves.take })
  await session.sendStdin('go\n')
  await leaves.reaches(5_000_000)
  second.close()
  const left = leaves.length
  await stays.reaches(20_000_000)
  const third = await sandbox.exec.attach(session.processId, { onStdout: returns.take })
  assert.deepEqual([await session.done, await third.done], [0, 0])
  assert.equal(leaves.length, left, 'nothing comes after close')
  assert.ok(stays.bytes().equals(expected), 'the one that stayed has all of it')
  assert.ok(leaves.bytes().equals(expected.subarray(0, left)), 'the one that left has the beginning')
  assert.ok(returns.length < expected.length && third.truncated, 'not all of it is kept')
  assert.ok(returns.bytes().equals(expected.subarray(-returns.length)), 'the one that returned has the rest')
  const { outputBytes } = await sandbox.exec.get(session.processId)
  assert.equal(outputBytes, expected.length)
})

test('a client outlives the server: every byte comes once, and its input still arrives', async () => {
  await using sandbox = await suite.create()
  // All of it is less than what is kept, so that nothing depends on how long the new server takes.
  const script = 'i=0; while [ $i -lt 200 ]; do i=$((i+1)); seq 1 800; sleep 0.01; done; read end; echo $end'
  const [one, two] = [new Seen(), new Seen()]
  const session = await sandbox.exec.start(script, { onStdout: one.take })
  const other = await sandbox.exec.attach(session.processId, { onStdout: two.take })
  await one.reaches(50_000)
  await suite.server.kill()
  await suite.server.start()
  const body = Buffer.concat(Array.from({ length: 200 }, () => seq(800)))
  await one.reaches(body.length)
  await session.sendStdin('the end\n')
  assert.deepEqual([await session.done, await other.done], [0, 0])
  const expected = Buffer.concat([body, Buffer.from('the end\n')])
  assert.ok(one.bytes().equals(expected))
  assert.ok(two.bytes().equals(expected))
  assert.equal(session.truncated, false)
})

test('a slow reader slows its writer, and neither another process nor the server', async () => {
  await using sandbox = await suite.create()
  const { url, key } = suite.server
  const islet = new Islet({ url, apiKey: key, WebSocket: WebSocket as unknown as SocketConstructor })
  const slow = await islet.sandboxes.connect(sandbox.id)
  const door = Promise.withResolvers<void>()
  let length = 0
  const session: ExecSession = await slow.exec.start('exec seq 1 6400000', {
    onStdout: async (data) => {
      length += data.length
      await door.promise
    },
  })
  const printed = async () => (await sandbox.exec.get(session.processId)).outputBytes
  let last = -1
  for (let same = 0; same < 10; ) {
    const now = await printed()
    same = now === last ? same + 1 : 0
    last = now
    await sleep(50)
  }
  assert.ok(last < 40_000_000, `it waits after ${last} bytes`)
  const other = await sandbox.exec.run('seq 1 100000 | md5sum; echo answered')
  assert.match(other.stdout, /answered/)
  const free = new Seen()
  const beside = await sandbox.exec.start('exec seq 1 1000000', { onStdout: free.take })
  assert.equal(await beside.done, 0)
  assert.ok(free.bytes().equals(seq(1_000_000)))
  assert.equal(await printed(), last)
  door.resolve()
  assert.equal(await session.done, 0)
  assert.equal(length, seq(6_400_000).length)
})
