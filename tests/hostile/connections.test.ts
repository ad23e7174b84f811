// Strangers who connect and say nothing, or half of something, until no connection is left.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import type { Islet } from 'islet'
import { get, raw } from '../../packages/server/src/preview/testing.ts'
import { eachIsolation } from './attack.ts'

const MAX = 400
const STRANGERS = 2000
/** An SDK that does much at once. */
const CALLS = 200

await eachIsolation(
  { area: 'connections', env: { ISLET_MAX_CONNECTIONS: String(MAX) }, isolations: ['namespace'] },
  (target) => {
    const sockets: Socket[] = []
    after(() => {
      for (const socket of sockets) socket.destroy()
    })

    /** Resolves when all are connected, each having said `text`. */
    const crowd = async (url: string, text: string): Promise<Socket[]> => {
      const { hostname, port } = new URL(url)
      const made = Array.from({ length: STRANGERS }, () => connect(Number(port), hostname))
      sockets.push(...made)
      for (const socket of made) socket.on('error', () => {}).resume()
      await Promise.all(made.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')])))
      if (text) for (const socket of made) socket.write(text)
      return made
    }
    const isServed = async (islet: Islet): Promise<void> => {
      const infos = await Promise.all(Array.from({ length: CALLS }, () => islet.sandboxes.list()))
      assert.equal(infos.length, CALLS)
    }

    test('idle connections of strangers leave room for those with a key, and for the next stranger', async () => {
      const { server } = target.suite
      for (const text of ['', 'GET /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nX-Half: ']) {
        await target.attack(
          `idle connections without a key${text && ', half a request on each'}`,
          STRANGERS,
          async () => {
            const strangers = await crowd(server.url, text)
            await isServed(server.islet())
            assert.equal((await fetch(`${server.url}/health`)).status, 200)
            await left(strangers, MAX)
            for (const socket of strangers) socket.destroy()
          },
        )
      }
    })

    test('a preview has room for a visitor when strangers hold all of its connections', async () => {
      const { server } = target.suite
      const sandbox = await target.suite.create()
      const url = await sandbox.getUrl({ port: 3000 })
      await target.attack('idle connections to a preview', STRANGERS, async () => {
        const strangers = await crowd(url, '')
        assert.equal((await get(url)).status, 502) // nothing listens there
        await isServed(server.islet())
        await left(strangers, MAX)
        for (const socket of strangers) socket.destroy()
      })
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

/** Waits until no more than `most` of these are open. */
async function left(sockets: Socket[], most: number): Promise<void> {
  for (;;) {
    const open = sockets.filter((socket) => !socket.closed)
    if (open.length <= most) return
    await Promise.race(open.map((socket) => once(socket, 'close')))
  }
}
