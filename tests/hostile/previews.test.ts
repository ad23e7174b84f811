// Programs inside that flood previews and health checks, and visitors that do not read.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox } from 'islet'
import { get } from '../../packages/server/test/support/preview.ts'
import { needs } from '../support/programs.ts'
import { root } from '../support/server.ts'
import { eachIsolation, SAME_IN_BOTH } from './attack.ts'

needs('python3')

const PORT = 3000
const HEALTH_PORT = 3001
const FLOOD_MS = 3000
const FLOOD = readFileSync(join(root, 'tests/hostile/flood.py'), 'utf8')

await eachIsolation({ area: 'previews', isolations: SAME_IN_BOTH }, (target) => {
  let sandbox: Sandbox
  let url: string
  before(async () => {
    sandbox = await target.suite.create()
    await sandbox.files.write('flood.py', FLOOD)
    await sandbox.exec.start(`exec python3 flood.py ${PORT}`)
    url = await sandbox.getUrl({ port: PORT })
    while ((await get(url)).status !== 200) await sleep(50)
  })

  /** Visitors who ask and then read nothing; `afterwards` is what they send behind their request. */
  const visit = async (path: string, visitors: number, headers = '', afterwards?: Buffer): Promise<void> => {
    const { hostname, port } = new URL(url)
    const sockets = Array.from({ length: visitors }, () => connect(Number(port), hostname))
    try {
      for (const socket of sockets) {
        socket.on('error', () => {})
        socket.pause().write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`)
        if (afterwards) void sendOn(socket, afterwards)
      }
      await sleep(FLOOD_MS)
    } finally {
      for (const socket of sockets) socket.destroy()
    }
  }

  test('endless informational answers are no answer', async () => {
    for (const path of ['/continue', '/hints']) {
      await target.attack(`endless informational answers to a preview (${path.slice(1)})`, 20, async () => {
        const answers = Array.from({ length: 20 }, () =>
          get(url + path, { headers: { Expect: '100-continue' } }),
        )
        for (const { status, text } of await Promise.all(answers)) {
          assert.equal(status, 502, text)
          assert.equal(JSON.parse(text).error.code, 'preview_failed')
        }
      })
      await target.attack(`the same, to visitors who do not read (${path.slice(1)})`, 20, () =>
        visit(path, 20, 'Expect: 100-continue\r\n'),
      )
    }
  })

  test('an answer whose head, chunk extension or trailers do not end is broken off', async () => {
    await target.attack('an endless head', 20, async () => {
      const answers = Array.from({ length: 20 }, () => get(`${url}/headers`))
      for (const { status } of await Promise.all(answers)) assert.equal(status, 502)
    })
    await target.attack('endless chunk extensions and trailers', 40, async () => {
      const paths = ['/extensions', '/trailers'].flatMap((path) => Array.from({ length: 20 }, () => path))
      // Broken off, or an error instead when it breaks before anything was passed on.
      for (const answer of await Promise.allSettled(paths.map((path) => get(url + path))))
        if (answer.status === 'fulfilled') assert.equal(answer.value.status, 502)
    })
  })

  test('chunks of one byte, as fast as the program can send them, leave time for others', async () => {
    await target.attack('endless chunks of one byte to a preview', 8, async () => {
      const leave = AbortSignal.timeout(FLOOD_MS)
      await Promise.allSettled(Array.from({ length: 8 }, () => get(`${url}/chunks`, { signal: leave })))
      assert.ok(leave.aborted, 'nobody but the visitors ends it')
    })
  })

  test('an endless body costs little memory, however many visitors do not read it', async () => {
    await target.attack('visitors who do not read an endless body', 100, () => visit('/body', 100))
    assert.equal((await get(url)).status, 200)
  })

  test('a tunnel passes no more than the other side takes, in both directions', async () => {
    const headers = 'Connection: Upgrade\r\nUpgrade: flood\r\n'
    await target.attack('tunnels whose visitors do not read', 100, () => visit('/tunnel', 100, headers))
    await target.attack('tunnels whose programs do not read', 10, () =>
      visit('/deaf', 10, headers, Buffer.alloc(65_536)),
    )
    assert.equal((await get(url)).status, 200)
  })

  test('a health check ends at the first few informational answers', async () => {
    await target.attack('endless informational answers to a health check', 1, async () => {
      const services = sandbox.service
      await services.start({
        name: 'flood',
        start: `exec python3 flood.py ${HEALTH_PORT}`,
        port: HEALTH_PORT,
        healthCheck: { path: '/continue', timeout: 10_000, interval: 500 },
      })
      let healthStatus: string | undefined
      while (healthStatus === undefined) {
        await sleep(50)
        healthStatus = (await services.list())[0]!.healthStatus
      }
      assert.match(healthStatus, /too many informational answers/)
      await services.delete('flood')
    })
  })
})

async function sendOn(socket: Socket, bytes: Buffer): Promise<void> {
  while (!socket.destroyed) if (!socket.write(bytes)) await once(socket, 'drain').catch(() => {})
}
