// Passes requests on to a server and keeps their bodies: shows what a default is that nobody wants to wait for.
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

export interface Relay {
  url: string
  /** The JSON bodies of requests whose path ends so, oldest first. */
  sent(ending: string): Record<string, unknown>[]
}

export async function relayTo(url: string): Promise<Relay> {
  const seen: { path: string; body: string }[] = []
  const relay = createServer(async (incoming, answer) => {
    const parts: Buffer[] = []
    for await (const part of incoming) parts.push(part)
    const body = Buffer.concat(parts)
    seen.push({ path: incoming.url!.split('?')[0]!, body: body.toString() })
    const headers = { ...incoming.headers, host: new URL(url).host }
    const passed = request(url + incoming.url, { method: incoming.method, headers }, (given) => {
      answer.writeHead(given.statusCode!, given.headers)
      given.pipe(answer)
    })
    passed.on('error', () => answer.destroy())
    passed.end(body)
  }).listen(0, '127.0.0.1')
  after(() => {
    relay.closeAllConnections()
    relay.close()
  })
  await once(relay, 'listening')
  return {
    url: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    sent: (ending) =>
      seen
        .filter(({ path, body }) => path.endsWith(ending) && body !== '')
        .map(({ body }) => JSON.parse(body)),
  }
}
