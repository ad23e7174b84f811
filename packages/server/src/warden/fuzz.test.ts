import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { needs } from '../../../../tests/support/programs.ts'
import { encodeFields } from '../wire/fields.ts'
import { encodeFrame, FrameDecoder } from '../wire/frames.ts'
import { FIELDS, MESSAGE, type MessageName } from './messages.gen.ts'
import { wardenBinary } from './warden.ts'

needs('clang', 'make')

const run = promisify(execFile)
const native = fileURLToPath(new URL('../../../../native', import.meta.url))
const clang = existsSync('/usr/bin/clang') || existsSync('/usr/bin/clang-14')
const REQUESTS = 6000

describe('the warden against hostile input', () => {
  it('decodes whatever libFuzzer finds in five seconds', {
    skip: clang ? undefined : 'clang is not installed',
  }, async () => {
    const corpus = mkdtempSync(join(tmpdir(), 'islet-fuzz-'))
    try {
      seeds().forEach((seed, i) => {
        writeFileSync(join(corpus, `seed-${i}`), seed)
      })
      await run('make', ['-C', native, 'build/fuzz/request'])
      const options = ['-max_total_time=5', '-max_len=8192', `-artifact_prefix=${corpus}/`, corpus]
      await run(join(native, 'build/fuzz/request'), options)
    } finally {
      rmSync(corpus, { recursive: true, force: true })
    }
  })

  it('stays alive and inside its directory under thousands of mutated requests', {
    skip: notRoot(),
  }, async () => {
    const dir = mkdtempSync(join(tmpdir(), 'islet-fuzz-warden-'))
    const beside = join(dir, 'beside')
    mkdirSync(join(dir, 'data'), { recursive: true })
    mkdirSync(join(dir, 'run'))
    mkdirSync(beside)
    writeFileSync(join(beside, 'file'), 'untouched')
    const before = outside()
    const socketEnds = startRaw(join(dir, 'data'), join(dir, 'run'))
    try {
      const answers = await converse(socketEnds.socket)
      assert.equal(answers.length, REQUESTS, 'every request is answered')
      assert.ok(answers.some((type) => type === MESSAGE.OK))
      assert.equal(socketEnds.child.exitCode, null, 'it is alive')
    } finally {
      socketEnds.socket.end()
      await socketEnds.exited
    }
    assert.equal(socketEnds.child.exitCode, 0)
    assert.equal(readFileSync(join(beside, 'file'), 'utf8'), 'untouched')
    assert.deepEqual(readdirSync(dir).sort(), ['beside', 'data', 'run'])
    assert.deepEqual(outside(), before)
    rmSync(dir, { recursive: true, force: true })
  })

  it('hangs up on a frame that announces too much', { skip: notRoot() }, async () => {
    const dir = mkdtempSync(join(tmpdir(), 'islet-fuzz-warden-'))
    mkdirSync(join(dir, 'run'))
    const { child, socket, exited } = startRaw(dir, join(dir, 'run'))
    socket.write(Buffer.from([0xff, 0xff, 0xff, 0x7f, 3, 0, 0, 0, 0]))
    socket.resume()
    await exited
    assert.equal(child.exitCode, 0)
    rmSync(dir, { recursive: true, force: true })
  })
})

function notRoot(): string | undefined {
  return process.getuid?.() === 0 ? undefined : 'the warden needs root'
}

function startRaw(data: string, runDir: string) {
  const args = [
    '--data',
    data,
    '--run',
    runDir,
    '--bridge',
    `islf${process.pid}`,
    '--cgroup',
    `islfuzz-${process.pid}`,
  ]
  const range = ['--uid-start', `${2300 * 65536}`, '--uid-count', '4', '--fd', '3']
  const child = spawn(wardenBinary(), [...args, ...range], { stdio: ['ignore', 'ignore', 'inherit', 'pipe'] })
  const socket = child.stdio[3] as Duplex
  socket.on('error', () => {})
  return { child, socket, exited: once(child, 'exit') }
}

/** Sends all requests and resolves with the types of their answers. */
function converse(socket: Duplex): Promise<number[]> {
  const random = randomFrom(20261115)
  const valid = seeds()
  const answers: number[] = []
  return new Promise((resolve) => {
    const decoder = new FrameDecoder()
    const next = () => {
      const seed = valid[random(valid.length)]!
      const frame = mutate(Buffer.from(seed), random)
      frame.writeUInt32LE(frame.length - 9, 0) // the framing stays whole, the rest need not
      socket.write(frame)
    }
    const WINDOW = 64
    let sent = 0
    const fill = () => {
      for (; sent < REQUESTS && sent - answers.length < WINDOW; sent++) next()
    }
    socket.on('data', (chunk: Buffer) => {
      decoder.push(chunk, (frame) => answers.push(frame.type))
      if (answers.length === REQUESTS) resolve(answers)
      else fill()
    })
    socket.on('close', () => resolve(answers))
    fill()
  })
}

function mutate(frame: Buffer, random: (below: number) => number): Buffer {
  const kind = random(5)
  if (kind === 0) return frame
  if (kind === 1)
    return Buffer.concat([frame, Buffer.from(Array.from({ length: random(64) }, () => random(256)))])
  if (kind === 2) return frame.subarray(0, 9 + random(frame.length - 8))
  if (kind === 3) frame[4] = random(256)
  for (let i = random(8); i >= 0; i--) if (frame.length > 9) frame[9 + random(frame.length - 9)] = random(256)
  return frame
}

/** One valid request of every kind, about things that mostly do not exist. */
function seeds(): Buffer[] {
  const tree = [
    {
      tree: 'root',
      at: '/',
      lower: [
        { kind: 1, name: 'one', tree: 'root' },
        { kind: 2, name: 'image', tree: 'root' },
      ],
    },
    { tree: 'usr', at: '/usr', lower: [{ kind: 3 }] },
  ]
  const limits = { memoryBytes: 1 << 26, cpuMillis: 500, pids: 10 }
  const network = { veth: 'islf-veth', address: '10.230.0.2', prefix: 24, gateway: '10.230.0.1' }
  const requests: [MessageName, object][] = [
    ['HELLO', { generation: 1 }],
    ['LAYER_CREATE', { layer: 'one', limitBytes: 1 << 20 }],
    ['LAYER_CREATE', { layer: 'two' }],
    ['LAYER_CLONE', { from: 'one', to: 'three', readOnly: 1 }],
    ['LAYER_DELETE', { layer: 'three' }],
    ['LAYER_DELETE', { layer: 'one' }],
    ['LAYER_LIMIT', { layer: 'two', limitBytes: 5 }],
    ['LAYER_USAGE', { layer: 'two' }],
    ['LAYER_LIST', {}],
    ['LAYER_SYNC', {}],
    ['LAYER_FLATTEN', { from: ['one', 'two'], to: 'four' }],
    [
      'BIND',
      {
        pid: process.pid,
        uidBase: 2300 * 65536,
        layer: 'one',
        tree,
        hostname: 'h',
        cgroup: 'g',
        limits,
        network,
      },
    ],
    ['CGROUP_LIMIT', { cgroup: 'g', limits }],
    ['CGROUP_FREEZE', { cgroup: 'g', frozen: 1 }],
    ['CGROUP_STAT', { cgroup: 'g' }],
    ['CGROUP_KILL', { cgroup: 'g' }],
    ['CGROUP_DELETE', { cgroup: 'g' }],
    ['CGROUP_LIST', {}],
    ['BRIDGE_DELETE', {}],
    ['VETH_DELETE', { veth: 'lo' }],
    ['VETH_LIST', {}],
  ]
  return requests.map(([name, fields], i) =>
    encodeFrame(MESSAGE[name], i, encodeFields(FIELDS[name]!, fields as never)),
  )
}

/** What must not change: interfaces, mounts, and the top of the filesystem. */
function outside(): object {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes('islet-fuzz'))
  return { interfaces: readdirSync('/sys/class/net').includes('lo'), mounts, top: readdirSync('/').sort() }
}

function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
