// Hostile programs inside against the management of their sandbox.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sweepDeadInstances } from '../../instance.ts'
import { type Harness, LIMITS, openBox } from '../suite/harness.ts'
import { openGvisor, whyNoGvisor } from './harness.ts'

/** Stops every process that is started beside it, so that it never ends. */
const STOP_OTHERS = `
import os, signal
print('ready', flush=True)
while True:
    try: os.kill(-1, signal.SIGSTOP)
    except OSError: pass
`
const TRIES = 30
const LATE_MS = 60_000

describe('a hostile sandbox with isolation gvisor', { skip: await whyNoGvisor() }, () => {
  let harness: Harness
  before(async () => {
    await sweepDeadInstances()
    harness = await openGvisor()
    await harness.engine.start(new Map())
  })
  after(() => harness.close())

  it('cannot block a change of its limits, nor other sandboxes', async () => {
    const { engine } = harness
    const box = await openBox(harness)
    box.run(['/usr/bin/python3', '-c', STOP_OTHERS]).catch(() => {})
    // Limits are told to gVisor's kernel by a process inside. Sooner or later one of them is stopped.
    let failure: unknown
    for (let i = 0; i < TRIES && failure === undefined; i++) {
      const late = new AbortController()
      const limited = engine.limit(box.cell, { ...LIMITS, pids: 64 + i }).catch((error: unknown) => error)
      const tooLong = sleep(LATE_MS, new Error('nobody gave up'), { signal: late.signal, ref: false })
      failure = await Promise.race([limited, tooLong])
      late.abort()
      tooLong.catch(() => {})
    }
    assert.match(String(failure), /did not end within/)
    // Other sandboxes still work, and this one can be removed.
    await using other = await openBox(harness)
    assert.equal(await other.print('echo fine'), 'fine')
    await box[Symbol.asyncDispose]()
  })

  it('cannot prevent a thaw', async () => {
    const { engine } = harness
    await using box = await openBox(harness)
    box.run(['/usr/bin/python3', '-c', STOP_OTHERS]).catch(() => {})
    await engine.freeze(box.cell)
    await engine.limit(box.cell, { ...LIMITS, pids: 64 })
    await engine.thaw(box.cell)
  })
})
