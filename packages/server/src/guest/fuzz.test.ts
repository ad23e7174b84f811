// Random and mutated conversations, for a bounded time. The seed is printed; ISLET_FUZZ_SEED runs it again.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FieldSpec, Fields, FieldTable } from '../wire/fields.ts'
import type { Link } from './link.ts'
import { FIELDS, MESSAGE, type MessageName, SENDER } from './messages.gen.ts'
import { encode, openLink, outputPayload, RawGuest, rawFrame, spec } from './testing.ts'

const SEED = Number(process.env.ISLET_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
const DURATION_MS = Number(process.env.ISLET_FUZZ_MS ?? 5000)
const FROM_GUEST = (Object.keys(MESSAGE) as MessageName[]).filter((name) => SENDER[name] !== 'server')

test('no sequence of messages crashes the server, hangs a call or fills the memory', async (t) => {
  t.diagnostic(`seed ${SEED}`)
  const random = generator(SEED)
  const until = performance.now() + DURATION_MS
  let conversations = 0
  let calls = 0
  while (performance.now() < until) {
    const { link, socketPath } = await openLink(t, { helloTimeoutMs: 200, awayTimeoutMs: 200 })
    const pending: Promise<unknown>[] = []
    for (let round = 0; round < 12; round++) {
      const guest = await RawGuest.greet(t, socketPath, `boot-${random(3)}`).catch(() => undefined)
      if (!guest) break
      for (let i = random(6); i >= 0; i--)
        pending.push(ask(link, random).catch((error) => assertKnown(error)))
      const streams = await heard(guest)
      for (let i = random(30); i >= 0 && !guest.socket.destroyed; i--)
        guest.raw(mutate(message(streams, random), random))
      await Promise.race([guest.closed, sleep(random(4))])
      guest.socket.destroy()
      conversations++
    }
    link.lost('the round is over')
    await within(Promise.all(pending), 5000)
    calls += pending.length
    await link.close()
  }
  t.diagnostic(`${conversations} conversations, ${calls} calls`)
  const held = process.memoryUsage().arrayBuffers
  assert.ok(held < 300 * 1024 * 1024, `${held} bytes are held`)
})

type Random = (below: number) => number

/** Every kind of request, and using what it answers with. */
async function ask(link: Link, random: Random): Promise<unknown> {
  const sink = { write: () => (random(2) === 0 ? undefined : sleep(random(3))) }
  switch (random(10)) {
    case 0:
      return link.stat('/a')
    case 1:
      return link.list('/a', { limit: 10 })
    case 2: {
      for await (const _piece of (await link.read('/a')).body) if (random(20) === 0) break
      return
    }
    case 3:
      return link.write('/a', body(random))
    case 4: {
      const process = await link.spawn(spec(['a'], { id: `p${random(4)}`, stdin: true }), sink)
      process.writeStdin(Buffer.alloc(random(400_000))).catch(() => {})
      if (random(3) === 0) process.forget()
      return process.exited
    }
    case 5:
      return (await link.attach(`p${random(4)}`, random(3), sink)).exited
    case 6: {
      const socket = await link.dial(80)
      socket.on('data', () => {})
      socket.end(Buffer.alloc(random(100_000)))
      if (!socket.closed) await once(socket, 'close').catch(() => {})
      return
    }
    case 7: {
      for await (const _event of await link.watch('/a', { recursive: true })) if (random(20) === 0) break
      return
    }
    case 8:
      return link.ping()
    default:
      return Promise.all([
        link.ports(),
        link.expose('a'),
        link.processes(),
        link.realpath('/a'),
        link.mkdir('/a'),
      ])
  }
}

async function* body(random: Random): AsyncGenerator<Uint8Array> {
  for (let i = random(5); i >= 0; i--) yield Buffer.alloc(random(700_000))
}

/** The streams of what the server has sent so far. */
async function heard(guest: RawGuest): Promise<number[]> {
  await sleep(1)
  const streams = [0, 1, 2, 3]
  for (let i = 0; i < 8; i++) {
    const received = await Promise.race([guest.next(), sleep(1, undefined)])
    if (!received) break
    streams.push(received.stream)
  }
  return streams
}

/** A message that a guest may send, often one that fits. */
function message(streams: number[], random: Random): Buffer {
  const name = FROM_GUEST[random(FROM_GUEST.length)]!
  const stream = streams[random(streams.length)]!
  if (name === 'OUTPUT')
    return encode(
      name,
      stream,
      outputPayload(1 + random(2), random(2) * random(10), Buffer.alloc(random(1000))),
    )
  const table = FIELDS[name]
  return table
    ? encode(name, stream, fields(table, random))
    : encode(name, stream, Buffer.alloc(random(5000)))
}

function fields(table: FieldTable, random: Random): Fields {
  const values: Fields = {}
  for (const field of table) {
    if (random(8) === 0) continue
    if (!field.list) values[field.name] = value(field, random)
    else values[field.name] = Array.from({ length: random(4) }, () => value(field, random)) as Fields[]
  }
  return values
}

function value({ name, kind }: FieldSpec, random: Random): number | string | Uint8Array | Fields {
  if (kind === 'u32') return random(4) === 0 ? random(2 ** 31) : random(6)
  if (kind === 'u64')
    return random(4) === 0 ? random(2 ** 31) * 2 ** 20 : random(3) === 0 ? 0 : random(2_000_000)
  if (kind === 'str') return name === 'path' ? '/a' : name === 'id' ? `p${random(4)}` : 'x'.repeat(random(80))
  if (kind === 'bytes') return Buffer.alloc(random(100))
  return fields(kind, random)
}

function mutate(bytes: Buffer, random: Random): Buffer {
  switch (random(12)) {
    case 0:
      return bytes.subarray(0, random(bytes.length))
    case 1: {
      bytes[random(bytes.length)] = random(256)
      return bytes
    }
    case 2:
      return Buffer.concat([bytes, bytes])
    case 3:
      return rawFrame(random(256), random(10), bytes)
    case 4:
      return rawFrame(bytes[4]!, bytes.readUInt32LE(5), bytes.subarray(9), random(2 ** 31))
    default:
      return bytes
  }
}

/** Callers branch on codes: nothing else may reach them. */
function assertKnown(error: { code?: string; name: string; message: string; stack?: string }): void {
  if (error.name !== 'IsletError') throw new Error(`a caller got ${error.stack}`)
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  const timer = new AbortController()
  const late = sleep(ms, undefined, { signal: timer.signal }).then(
    () => {
      throw new Error(`something still hangs after ${ms} ms`)
    },
    () => promise,
  )
  try {
    return await Promise.race([promise, late])
  } finally {
    timer.abort()
  }
}

/** mulberry32 */
function generator(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % Math.max(1, below)
  }
}
