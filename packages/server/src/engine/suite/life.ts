import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRunning, signal } from '../../lib/proc.ts'
import type { Gaps } from './gaps.ts'
import { type Box, bind, boxOf, firstProcess, type Harness, newId, openBox } from './harness.ts'
import { TestLink } from './link.ts'

export function life(harness: () => Harness, gaps: Gaps): void {
  it('connects its guest before it has a root', gaps.unless('lateRoot'), async () => {
    const { engine } = harness()
    const cell = await engine.allocate(newId())
    const link = await TestLink.listen(join(cell.linkDir, 'link.sock'))
    await engine.prepare(cell)
    await link.ready()
    await engine.destroy(cell)
    await link.close()
  })

  it('is not kept by another server when it has no root', gaps.unless('lateRoot'), async () => {
    const { engine } = harness()
    const cell = await engine.allocate(newId())
    const link = await TestLink.listen(join(cell.linkDir, 'link.sock'))
    await engine.prepare(cell)
    await link.ready()
    const bound = await openBox(harness())
    await Promise.all([link.close(), bound.link.close()])
    const next = await harness().restart()
    const keep = new Map([
      [cell.id, 'lyr-any'],
      [bound.cell.id, bound.root.layer],
    ])
    assert.deepEqual(await next.start(keep), new Set([bound.cell.id]))
    assert.equal(existsSync(cell.linkDir), false)
    await next.destroy(await next.adopt(bound.cell.id))
  })

  it(
    'is kept with the root that it was given ahead for who has that layer alone',
    gaps.unless('lateRoot'),
    async () => {
      const boxes = await Promise.all([0, 1, 2].map(() => openBox(harness(), { ahead: true })))
      const [right, wrong, again] = boxes as [Box, Box, Box]
      const other = await harness().newRoot()
      await bind(harness(), again.cell, { root: other })
      await Promise.all(boxes.map(({ link }) => link.close()))
      const next = await harness().restart()
      const keep = new Map([
        [right.cell.id, right.root.layer],
        [wrong.cell.id, other.layer],
        [again.cell.id, other.layer],
      ])
      assert.deepEqual(await next.start(keep), new Set([right.cell.id, again.cell.id]))
      assert.equal(existsSync(wrong.cell.linkDir), false)
      for (const { cell } of [right, again]) await next.destroy(await next.adopt(cell.id))
    },
  )

  it('gives what it started in the background an ordinary priority', async () => {
    await using box = await openBox(harness(), { background: true })
    // Nice value and policy, of the command and of the guest that started it.
    const priority = `sed 's/.*) //' /proc/$pid/stat | cut -d ' ' -f 17,39`
    assert.equal(await box.print(`for pid in self $PPID; do ${priority}; done`), '0 0\n0 0')
  })

  it('runs a command after bind', async () => {
    await using box = await openBox(harness())
    assert.equal(await box.print('echo hello from $0'), 'hello from /bin/sh')
    assert.equal(await harness().engine.alive(box.cell), true)
  })

  it('runs commands as root and as another user', gaps.unless('users'), async () => {
    await using box = await openBox(harness())
    assert.equal(await box.print('id -u'), '0')
    assert.equal(await box.print('id -u', { user: '1000' }), '1000')
  })

  it('gives a sandbox its name', gaps.unless('wall'), async () => {
    await using box = await openBox(harness(), { hostname: 'sbx-name' })
    assert.equal(await box.print('cat /proc/sys/kernel/hostname'), 'sbx-name')
  })

  it('changes the root under a running guest', gaps.unless('lateRoot'), async () => {
    await using box = await openBox(harness())
    const { bootId } = box.link
    await box.print('echo old > /root/file; (sleep 1000 &)')
    await box.link.killAll()
    await bind(harness(), box.cell)
    await box.print('test ! -e /root/file')
    assert.equal(await box.print('echo new > /tmp/file; cat /tmp/file'), 'new')
    assert.equal(box.link.bootId, bootId)
  })

  it('makes many at once', async () => {
    const boxes = await Promise.all(Array.from({ length: 6 }, () => openBox(harness())))
    const answers = await Promise.all(boxes.map((box, i) => box.print(`echo ${i}`)))
    assert.deepEqual(answers, ['0', '1', '2', '3', '4', '5'])
    await Promise.all(boxes.map((box) => box[Symbol.asyncDispose]()))
  })

  it('refuses two cells of one id', async () => {
    const { engine } = harness()
    await using box = await openBox(harness())
    await assert.rejects(engine.allocate(box.cell.id), { code: 'conflict' })
    assert.equal(await box.print('echo still here'), 'still here')
  })

  it('adopts a cell after a restart of the server, with what runs in it', async () => {
    const box = await openBox(harness())
    await box.print('sleep 1000 > /dev/null 2>&1 & echo $! > pid', {
      cwd: box.bound.workspace ?? '/tmp',
    })
    const { bootId } = box.link
    await box.link.close()
    const engine = await harness().restart()
    assert.deepEqual(await engine.start(new Map([[box.cell.id, box.root.layer]])), new Set([box.cell.id]))
    const cell = await engine.adopt(box.cell.id)
    assert.deepEqual(cell, box.cell)
    const link = await TestLink.listen(join(cell.linkDir, 'link.sock'))
    await engine.ownSocket(cell)
    await link.ready()
    await using again = boxOf(engine, cell, box.bound, link, box.root)
    assert.equal(link.bootId, bootId)
    await again.print('kill -0 $(cat pid)', { cwd: box.bound.workspace ?? '/tmp' })
    assert.equal(await engine.alive(cell), true)
  })

  it('removes cells at start that are not to be kept', async () => {
    const box = await openBox(harness())
    await box.link.close()
    const engine = await harness().restart()
    assert.deepEqual(await engine.start(new Map()), new Set())
    assert.equal(await engine.alive(box.cell), false)
    assert.equal(existsSync(box.cell.linkDir), false)
    await assert.rejects(engine.adopt(box.cell.id), { code: 'sandbox_lost' })
  })

  it('does not claim that a dead cell lives', async () => {
    const { engine } = harness()
    const box = await openBox(harness())
    await killGuest(harness(), box.cell.id)
    assert.equal(await engine.alive(box.cell), false)
    await engine.destroy(box.cell)
    await box.link.close()
    assert.equal(await engine.alive(box.cell), false)
    assert.deepEqual(
      await (await harness().restart()).start(new Map([[box.cell.id, box.root.layer]])),
      new Set(),
    )
  })

  it('destroys a cell at any stage, and one that is gone', async () => {
    const { engine } = harness()
    const allocated = await engine.allocate(newId())
    await engine.destroy(allocated)
    const cell = await engine.allocate(newId())
    const link = await TestLink.listen(join(cell.linkDir, 'link.sock'))
    const preparing = engine.prepare(cell)
    await sleep(1)
    await Promise.all([engine.destroy(cell), engine.destroy(cell)])
    await preparing.catch(() => {})
    await engine.destroy(cell)
    await link.close()
    for (const { linkDir } of [allocated, cell]) assert.equal(existsSync(linkDir), false)
  })

  it('kills everything in a cell', async () => {
    const box = await openBox(harness())
    const mark = `1000.${Math.floor(Math.random() * 1e9)}`
    await box.print(`setsid sleep ${mark} > /dev/null 2>&1 & (sleep ${mark} > /dev/null 2>&1 &)`)
    const inside = 'cat /proc/[0-9]*/cmdline 2> /dev/null | tr "\\0" "\\n" | grep -cx'
    // Both were forked, but may not have executed their programs yet.
    while (Number(await box.print(`${inside} ${mark} || true`)) < 2) await sleep(5)
    await box[Symbol.asyncDispose]()
    assert.equal(await processesWith(mark), 0)
  })
}

/** Kills the process that this test's engine started. Never by a command inside: an engine may have no wall. */
async function killGuest(harness: Harness, id: string): Promise<void> {
  const first = await firstProcess(harness, id)
  assert.equal(isRunning(first), true)
  signal(first.pid, 'SIGKILL')
  while (isRunning(first)) await sleep(5)
}

async function processesWith(word: string): Promise<number> {
  let count = 0
  for (const pid of await readdir('/proc')) {
    const argv = /^\d+$/.test(pid) ? await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '') : ''
    if (argv.split('\0').includes(word)) count++
  }
  return count
}
