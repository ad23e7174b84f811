import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { needs } from '../../../tests/support/programs.ts'
import { claimInstance, EPHEMERAL_MARKER, type Instance, SLOTS, sweepDeadInstances } from './instance.ts'
import { identify } from './lib/proc.ts'

needs('mkfs.btrfs')

const isRoot = process.geteuid?.() === 0

describe('instance', { skip: !isRoot && 'slots are claimed by root only' }, () => {
  let base: string
  let runRoot: string
  const children: ChildProcess[] = []

  beforeEach(async () => {
    base = await realpath(await mkdtemp(join(tmpdir(), 'islet-instance-')))
    runRoot = join(base, 'run')
  })

  afterEach(async () => {
    for (const child of children.splice(0)) await kill(child)
    await rm(base, { recursive: true, force: true })
  })

  it('derives everything global from the slot', async () => {
    const instance = await claimInstance({ dataDir: join(base, 'data'), runRoot })
    const { slot, uidStart, uidRanges, bridge, table, cgroup, subnet, gateway, runDir } = instance
    assert.deepEqual(
      { slot, uidStart, uidRanges, bridge, table, cgroup, subnet, gateway, runDir },
      {
        slot: 0,
        uidStart: 268435456,
        uidRanges: 1024,
        bridge: 'islet0',
        table: 'islet0',
        cgroup: 'islet0',
        subnet: '10.231.0.0',
        gateway: '10.231.0.1',
        runDir: join(runRoot, '0'),
      },
    )
  })

  it('gives each of several servers that start at once another slot', async () => {
    const servers = await Promise.all(Array.from({ length: 8 }, (_, i) => serve(`data-${i}`)))
    const slots = servers.map((server) => server.answer.slot)
    assert.equal(new Set(slots).size, servers.length, String(slots))
  })

  it('lets one of several servers that start at once with one data directory win', async () => {
    const servers = await Promise.all(Array.from({ length: 6 }, () => serve('data')))
    const winners = servers.filter((server) => server.answer.slot !== undefined)
    assert.equal(winners.length, 1)
    for (const server of servers) if (server !== winners[0]) assert.equal(server.answer.code, 'conflict')
  })

  it('gives a data directory its slot again after kill -9', async () => {
    const other = await serve('other')
    const first = await serve('data')
    await kill(first.child)
    const again = await serve('data')
    assert.equal(again.answer.slot, first.answer.slot)
    assert.notEqual(again.answer.slot, other.answer.slot)
  })

  it('lets one of several servers take over after kill -9', async () => {
    const first = await serve('data')
    await kill(first.child)
    const servers = await Promise.all(Array.from({ length: 6 }, () => serve('data')))
    const winners = servers.filter((server) => server.answer.slot !== undefined)
    assert.deepEqual(
      winners.map((server) => server.answer.slot),
      [first.answer.slot],
    )
  })

  it('gives a released slot to the next', async () => {
    const first = await claimInstance({ dataDir: join(base, 'first'), runRoot })
    assert.equal(await first.release(), true)
    assert.deepEqual(await readdir(runRoot), [])
    const second = await claimInstance({ dataDir: join(base, 'second'), runRoot })
    assert.equal(second.slot, first.slot)
    const firstAgain = await claimInstance({ dataDir: join(base, 'first'), runRoot })
    assert.notEqual(firstAgain.slot, second.slot)
  })

  it('keeps a slot that has a living cell', async () => {
    const instance = await claimInstance({ dataDir: join(base, 'data'), runRoot })
    const sleeper = await plantCell(instance)
    assert.equal(await instance.release(), false)
    await kill(sleeper)
    assert.equal(await instance.release(), true)
  })

  it('destroys what a dead ephemeral server left: cells, slot and data directory', async () => {
    const server = await serve('ephemeral', { ephemeral: true })
    const sleeper = await plantCell({ runDir: join(runRoot, String(server.answer.slot)) })
    await writeFile(join(base, 'ephemeral', 'file'), 'x')
    assert.deepEqual(await sweepDeadInstances({ runRoot }), [], 'it lives')
    await kill(server.child)
    assert.deepEqual(await sweepDeadInstances({ runRoot }), [server.answer.slot])
    assert.equal(sleeper.signalCode ?? (await exit(sleeper)), 'SIGKILL')
    assert.equal(existsSync(join(base, 'ephemeral')), false)
    assert.deepEqual(await readdir(runRoot), [])
  })

  it('unmounts the pool of a dead ephemeral server and leaves no loop device', async () => {
    const server = await serve('ephemeral', { ephemeral: true })
    const file = join(base, 'ephemeral', 'pool.img')
    const pool = join(base, 'ephemeral', 'pool')
    await mkdir(pool)
    execFileSync('truncate', ['-s', '128M', file])
    execFileSync('mkfs.btrfs', ['-q', file])
    execFileSync('mount', ['-o', 'loop', file, pool])
    await kill(server.child)
    await sweepDeadInstances({ runRoot })
    assert.equal(existsSync(file), false)
    assert.doesNotMatch(await readFile('/proc/self/mountinfo', 'utf8'), new RegExp(base))
    assert.doesNotMatch(
      execFileSync('losetup', ['--list', '--noheadings'], { encoding: 'utf8' }),
      new RegExp(base),
    )
  })

  it('removes what a dead server left if its data directory is gone, also a loop device on its pool', async () => {
    const server = await serve('data')
    const file = join(base, 'data', 'pool.img')
    execFileSync('truncate', ['-s', '16M', file])
    execFileSync('losetup', ['--find', file])
    const sleeper = await plantCell({ runDir: join(runRoot, String(server.answer.slot)) })
    await kill(server.child)
    await rm(join(base, 'data'), { recursive: true })
    assert.deepEqual(await sweepDeadInstances({ runRoot }), [], 'a cell of it lives')
    await kill(sleeper)
    assert.deepEqual(await sweepDeadInstances({ runRoot }), [server.answer.slot])
    assert.deepEqual(await readdir(runRoot), [])
    assert.doesNotMatch(
      execFileSync('losetup', ['--list', '--noheadings'], { encoding: 'utf8' }),
      new RegExp(base),
    )
  })

  it('leaves the data directory of a dead server that is not ephemeral alone', async () => {
    const server = await serve('data')
    await kill(server.child)
    assert.deepEqual(await sweepDeadInstances({ runRoot }), [])
    assert.equal(existsSync(join(base, 'data')), true)
  })

  it('never removes a directory without the marker', async () => {
    const server = await serve('ephemeral', { ephemeral: true })
    await rm(join(base, 'ephemeral', EPHEMERAL_MARKER))
    await writeFile(join(base, 'ephemeral', 'precious'), 'x')
    await kill(server.child)
    await sweepDeadInstances({ runRoot })
    assert.equal(existsSync(join(base, 'ephemeral', 'precious')), true)
  })

  it('does not make a directory with something in it ephemeral', async () => {
    await mkdir(join(base, 'data'))
    await writeFile(join(base, 'data', 'precious'), 'x')
    await assert.rejects(claimInstance({ dataDir: join(base, 'data'), ephemeral: true, runRoot }), {
      code: 'conflict',
    })
  })

  it('frees a slot whose server died before it wrote its owner file, but not a new one', async () => {
    await mkdir(join(runRoot, '3'), { recursive: true })
    assert.deepEqual(await sweepDeadInstances({ runRoot }), [])
    const longAgo = Date.now() / 1000 - 120
    await utimes(join(runRoot, '3'), longAgo, longAgo)
    assert.deepEqual(await sweepDeadInstances({ runRoot }), [3])
    assert.deepEqual(await readdir(runRoot), [])
  })

  it('takes the slot of a dead idle server when there is no other', async () => {
    const first = await serve('first')
    await kill(first.child)
    for (let slot = 0; slot < SLOTS; slot++) await mkdir(join(runRoot, String(slot)), { recursive: true })
    const instance = await claimInstance({ dataDir: join(base, 'second'), runRoot })
    assert.equal(instance.slot, first.answer.slot)
  })

  interface Server {
    child: ChildProcess
    answer: { slot?: number; code?: string }
  }

  /** A process that claims a slot and keeps running. */
  async function serve(name: string, options: { ephemeral?: boolean } = {}): Promise<Server> {
    const module = JSON.stringify(new URL('./instance.ts', import.meta.url).href)
    const claim = JSON.stringify({ dataDir: join(base, name), runRoot, ...options })
    const program = `import { claimInstance } from ${module}
      try { console.log(JSON.stringify({ slot: (await claimInstance(${claim})).slot })) }
      catch (error) { console.log(JSON.stringify({ code: error.code ?? String(error) })) }
      setInterval(() => {}, 1e9)`
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    children.push(child)
    for await (const line of createInterface(child.stdout)) return { child, answer: JSON.parse(line) }
    throw new Error('it said nothing')
  }

  /** A process and the record of its cell. */
  async function plantCell({ runDir }: Pick<Instance, 'runDir'>): Promise<ChildProcess> {
    const sleeper = spawn('sleep', ['1000'], { stdio: 'ignore' })
    children.push(sleeper)
    await mkdir(join(runDir, 's', 'planted'), { recursive: true })
    const record = { id: 'planted', process: identify(sleeper.pid!) }
    await writeFile(join(runDir, 's', 'planted', 'cell.json'), JSON.stringify(record))
    return sleeper
  }
})

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await exit(child)
}

function exit(child: ChildProcess): Promise<NodeJS.Signals | null> {
  return new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
}
