// Clients without a key that connect and send nothing, or half a request, until no connection is left.
import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Islet } from 'islet'
import { get, raw } from '../../packages/server/test/support/preview.ts'
import { root } from '../support/server.ts'
import { eachIsolation } from './attack.ts'

const MAX = 400
/** More than one process may have files open on many machines, so they come from several. */
const STRANGERS = 20_000
const CROWDS = 2
/** An SDK that does much at once. */
const CALLS = 200

await eachIsolation(
  { area: 'connections', env: { ISLET_MAX_CONNECTIONS: String(MAX) }, isolations: ['namespace'] },
  (target) => {
    const isServed = async (islet: Islet): Promise<void> => {
      const infos = await Promise.all(Array.from({ length: CALLS }, () => islet.sandboxes.list()))
      assert.equal(infos.length, CALLS)
    }

    test('idle connections of strangers leave room for those with a key, and for the next stranger', async () => {
      const { server } = target.suite
      for (const text of ['', 'GET /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nX-Half: ']) {
        await using crowd = new Crowd()
        await target.attack(
          `idle connections without a key${text && ', half a request on each'}`,
          STRANGERS,
          async () => {
            await crowd.come(server.url, text)
            assert.equal((await fetch(`${server.url}/health`)).status, 200)
            await crowd.isSmall()
          },
        )
        await isServed(server.islet())
      }
    })

    test('a preview has room for a visitor when strangers hold all of its connections', async () => {
      const { server } = target.suite
      const sandbox = await target.suite.create()
      const url = await sandbox.getUrl({ port: 3000 })
      await using crowd = new Crowd()
      await target.attack('idle connections to a preview', STRANGERS, async () => {
        await crowd.come(url, '')
        assert.equal((await get(url)).status, 502) // nothing listens there
        await crowd.isSmall()
      })
      await isServed(server.islet())
    })

    test('a request with two Hosts, or for another server, is refused', async () => {
      const { server } = target.suite
      const { host } = new URL(server.url)
      const head = `Authorization: Bearer ${server.key}\r\nConnection: close\r\n`
      const upgrade = `Authorization: Bearer ${server.key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`
      const requests = [
        `GET /v1/sandboxes HTTP/1.1\r\nHost: ${host}\r\nHost: other\r\n${head}\r\n`,
        `GET http://other/v1/sandboxes HTTP/1.1\r\nHost: ${host}\r\n${head}\r\n`,
        `GET /v1/signals HTTP/1.1\r\nHost: ${host}\r\nHost: ${host}\r\n${upgrade}\r\n`,
        `GET http://other/v1/signals HTTP/1.1\r\nHost: ${host}\r\n${upgrade}\r\n`,
      ]
      await target.attack('requests with two meanings', requests.length, async () => {
        for (const text of requests) assert.match(await raw(server.url, text), /^HTTP\/1.1 400 /, text)
      })
      const absolute = `GET ${server.url}/v1/sandboxes HTTP/1.1\r\nHost: ${host}\r\n${head}\r\n`
      assert.match(await raw(server.url, absolute), /^HTTP\/1.1 200 /)
    })
  },
)

/** Strangers who are connected to a port. */
class Crowd {
  #port = 0
  #processes: ChildProcessByStdio<Writable, Readable, null>[] = []

  /** Resolves when each of them was connected. */
  async come(url: string, text: string): Promise<void> {
    const { hostname, port } = new URL(url)
    this.#port = Number(port)
    const script = join(root, 'tests/hostile/strangers.ts')
    const args = [script, hostname, port, String(STRANGERS / CROWDS), text]
    for (let n = 0; n < CROWDS; n++)
      this.#processes.push(spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] }))
    await Promise.all(this.#processes.map(({ stdout }) => once(stdout, 'data')))
  }

  /** Resolves when no more are connected than may be. What the kernel alone remembers on the other side does not count. */
  async isSmall(): Promise<void> {
    while (connectionsTo(this.#port) > MAX) await sleep(50)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.#processes.map(async (child) => {
        child.stdin.end()
        await once(child, 'exit')
      }),
    )
  }
}

function connectionsTo(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const isOpen = (line: string) => {
    const [, from = '', , state] = line.trim().split(/\s+/)
    return from.endsWith(local) && state === '01'
  }
  return readFileSync('/proc/net/tcp', 'utf8').split('\n').filter(isOpen).length
}
