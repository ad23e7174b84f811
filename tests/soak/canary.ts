// A sandbox that no fault targets. It measures how long the server is away, and runs a job that prints all the time.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecResult, ProcessInfo, ProcessOutput, Sandbox } from '@islet/contract'
import { LOST, type World } from './world.ts'

const POLL_MS = 10
const JOB = 'i=0; while :; do echo $i; i=$((i+1)); sleep 0.1; done'
const BACK_BY_MS = 120_000

export class Canary {
  readonly #world: World
  #id = ''
  #job = ''

  constructor(world: World) {
    this.#world = world
  }

  /** Call it before anything is harmed. */
  async start(): Promise<void> {
    const body = { runtime: 'host', timeout: { idle: 0 } }
    this.#id = (await this.#surely<Sandbox>('POST', '/sandboxes', body)).id
    this.#job = (await this.#surely<ProcessInfo>('POST', this.#path('/processes'), { command: JOB })).id
  }

  /** Since a kill, which was at `killedAt` (`performance.now`). */
  async measureRecovery(killedAt: number): Promise<void> {
    const { healthMs, execMs } = this.#world.tally.recovery
    await this.#answers(async () => (await this.#world.server.fetch('/health')).ok)
    healthMs.push(performance.now() - killedAt)
    await this.#answers(async () => {
      const answer = await this.#world.server.post(`/v1${this.#path('/exec')}`, { command: 'true' })
      return answer.ok && ((await answer.json()) as ExecResult).exitCode === 0
    })
    execMs.push(performance.now() - killedAt)
  }

  /** All that its job printed is there, and then the sandbox goes. */
  async finish(): Promise<void> {
    const path = this.#path(`/processes/${this.#job}`)
    const { status } = await this.#surely<ProcessInfo>('DELETE', path)
    assert.equal(status, 'exited')
    const { stdout, droppedBytes } = await this.#surely<ProcessOutput>('GET', `${path}/output`)
    // A full disk removes kept output, from its beginning on.
    if (this.#world.tally.diskFull === 0) assert.equal(droppedBytes, 0)
    const lines = stdout
      .trimEnd()
      .split('\n')
      .slice(droppedBytes > 0 ? 1 : 0)
    const gap = lines.find((line, index) => Number(line) !== Number(lines[0]) + index)
    assert.equal(gap, undefined, `the job of the canary printed no line before ${gap}`)
    await this.#surely('DELETE', this.#path(''))
  }

  async #answers(attempt: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + BACK_BY_MS
    while (!(await attempt().catch(() => false))) {
      this.#world.signal.throwIfAborted()
      if (Date.now() > deadline) throw new Error(`The server does not answer ${BACK_BY_MS} ms after a kill`)
      await sleep(POLL_MS)
    }
  }

  async #surely<T>(method: string, path: string, body?: unknown): Promise<T> {
    for (;;) {
      const answer = await this.#world.call<T>('canary', method, path, body)
      if (typeof answer !== 'symbol') return answer
      if (answer !== LOST) await sleep(POLL_MS)
    }
  }

  #path(rest: string): string {
    return `/sandboxes/${this.#id}${rest}`
  }
}
