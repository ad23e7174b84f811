import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ceilingOf, raiseMachineLimits } from './machine-room.ts'

const GIB = 1024 ** 3
const MACHINE = { memoryBytes: 16 * GIB, cpuMillis: 4000, pids: 100_000 }
const AUTO = { memory: 'auto', cpu: 'auto', pids: 'auto' } as const

test('a ceiling leaves a tenth of the memory and a fourth of the processes, and no quota where none is needed', () => {
  assert.deepEqual(ceilingOf(AUTO, MACHINE), {
    memoryBytes: Math.floor(16 * GIB * 0.9),
    cpuMillis: 0,
    pids: 75_000,
  })
})

test('on a small machine it leaves 512 MiB, but not more than half', () => {
  const memory = (memoryBytes: number) => ceilingOf(AUTO, { ...MACHINE, memoryBytes }).memoryBytes
  assert.equal(memory(2 * GIB), 1.5 * GIB)
  assert.equal(memory(0.5 * GIB), 0.25 * GIB)
})

test('an operator says how many percent', () => {
  assert.deepEqual(ceilingOf({ memory: 50, cpu: 75, pids: 10 }, MACHINE), {
    memoryBytes: 8 * GIB,
    cpuMillis: 3000,
    pids: 10_000,
  })
  assert.equal(ceilingOf({ memory: 100, cpu: 100, pids: 100 }, MACHINE).memoryBytes, 16 * GIB)
})

test('limits of the kernel are raised and never lowered, and one that is not there is no failure', async () => {
  const proc = mkdtempSync(join(tmpdir(), 'islet-room-'))
  try {
    const warnings: string[] = []
    const log = { info() {}, warn: (_: object, message: string) => void warnings.push(message) }
    mkdirSync(join(proc, 'kernel'))
    mkdirSync(join(proc, 'fs'))
    writeFileSync(join(proc, 'kernel/pid_max'), '32768\n')
    writeFileSync(join(proc, 'fs/file-max'), `${2n ** 63n - 1n}\n`)
    await raiseMachineLimits(log, proc)
    assert.equal(readFileSync(join(proc, 'kernel/pid_max'), 'utf8'), '4194304')
    assert.equal(readFileSync(join(proc, 'fs/file-max'), 'utf8'), '9223372036854775807\n')
    assert.deepEqual(warnings, ['kernel.pty.max of this machine could not be raised to 262144.'])
  } finally {
    rmSync(proc, { recursive: true })
  }
})
