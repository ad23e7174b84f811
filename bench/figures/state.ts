// A sandbox with 20,000 changed files of 50 MB in all: how long it stands still for a checkpoint, and how long a checkpoint, a
// fork, a restore and a wake take, each to the result of a first command. Beside it the same where layers are copied.
import { setTimeout } from 'node:timers/promises'
import { Sandbox } from 'islet'
import { baseImageForTests } from '../../packages/server/src/image/testing.ts'
import { TestServer } from '../../tests/support/server.ts'
import type { Figure, Row } from '../figure.ts'
import { summarise } from '../measure.ts'

const FILES = 20_000
const BYTES = 50_000_000
const CHANGE = `python3 -c "
import os
for i in range(${FILES}):
    d = f'/workspace/tree/{i // 100}'
    if i % 100 == 0: os.makedirs(d, exist_ok=True)
    with open(f'{d}/{i}', 'wb') as f: f.write(os.urandom(${BYTES / FILES}))
"`
const MANY = 10
const SETTLE_MS = 200

export const stateFigure: Figure = async ({ create, quick }) => {
  const { imagesDir } = await baseImageForTests()
  const env = { ISLET_IMAGE_DIR: imagesDir, ISLET_LOG_LEVEL: 'warn', ISLET_STORAGE: 'copy' }
  const pooled = await measure(create, quick ? 2 : 10)
  await using copying = await TestServer.start({ env })
  const copied = await measure(() => Sandbox.create({ url: copying.url, apiKey: copying.key }), quick ? 1 : 4)
  return Object.entries(pooled).flatMap(([name, times]): Row[] => [
    { figure: name, islet: summarise(times), unit: 'ms' },
    { figure: `${name}, copying`, islet: summarise(copied[name]!), unit: 'ms' },
  ])
}

/** Every file is written again before each checkpoint, so that there is all of it to save. */
async function measure(create: () => Promise<Sandbox>, rounds: number): Promise<Record<string, number[]>> {
  await using sandbox = await create()
  const times: Record<string, number[]> = {}
  const note = (name: string, ms: number) => {
    times[name] ??= []
    times[name].push(ms)
  }
  const time = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const started = performance.now()
    const result = await work()
    note(name, performance.now() - started)
    return result
  }
  for (let round = 0; round < rounds; round++) {
    await ran(sandbox, CHANGE)
    const checkpoint = await time('checkpoint', () => sandbox.createCheckpoint(`round ${round}`))
    note('checkpoint, frozen', checkpoint.frozenMs)
    for (const count of [1, MANY]) {
      await settled(sandbox)
      const forks = await time(`fork x${count}, to all first results`, () => forked(sandbox, count))
      note(`fork x${count}, frozen`, forks.frozenMs)
      await Promise.all(forks.children.map((child) => child.kill()))
    }
    await time('restore, to first result', async () => {
      await sandbox.restoreCheckpoint(checkpoint.id)
      await ran(sandbox, 'true')
    })
    await time('hibernate', () => sandbox.hibernate())
    await time('wake, to first result', () => ran(sandbox, 'true'))
  }
  return times
}

async function forked(source: Sandbox, count: number): Promise<{ children: Sandbox[]; frozenMs: number }> {
  const forks = await source.fork({ count })
  const children = forks.map((fork) => {
    if (!fork.ok) throw fork.error
    return fork.sandbox
  })
  await Promise.all(children.map((child) => ran(child, 'true')))
  return { children, frozenMs: forks.frozenMs }
}

/** A few files of the 20,000 are changed since the last one, and the machine has done what that left to do. */
async function settled(sandbox: Sandbox): Promise<void> {
  await ran(sandbox, 'cd /workspace/tree/0 && for i in $(seq 100); do date > $i; done')
  await setTimeout(SETTLE_MS)
}

async function ran(sandbox: Sandbox, command: string): Promise<void> {
  const { exitCode, stderr } = await sandbox.exec.run(command)
  if (exitCode !== 0) throw new Error(`${command}: ${stderr}`)
}
