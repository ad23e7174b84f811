// A small page through a preview, beside the same program on the machine itself: what the proxy costs.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { giveNode } from '../../tests/support/node-inside.ts'
import type { Figure } from '../figure.ts'
import { round, sample, summarise } from '../measure.ts'

const PORT = 3000
const PROGRAM = `
const server = require('node:http').createServer((_, answer) => answer.end('hello'))
server.listen(Number(process.argv[1]), '127.0.0.1', () => console.log(server.address().port))
`

export const previewFigure: Figure = async ({ create, quick }) => {
  const n = quick ? 200 : 2000
  const direct = spawn(process.execPath, ['-e', PROGRAM, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [port] = await once(direct.stdout, 'data')
  const alone = await timesOf(`http://127.0.0.1:${Number(String(port))}`, n)
  direct.kill()

  const sandbox = await create()
  await giveNode(sandbox)
  await sandbox.exec.spawn(['node', '-e', PROGRAM, String(PORT)])
  const url = await sandbox.getUrl({ port: PORT })
  await listening(url)
  const proxied = await timesOf(url, n)
  await sandbox.kill()

  const [through, without] = [summarise(proxied), summarise(alone)]
  return [
    { figure: 'preview: GET, one after another', islet: through, unit: 'ms' },
    { figure: 'the same program without a preview', islet: without, unit: 'ms' },
    { figure: 'preview: added by the proxy, p50', islet: round(through.p50 - without.p50), unit: 'ms' },
    { figure: 'preview: added by the proxy, p95', islet: round(through.p95 - without.p95), unit: 'ms' },
  ]
}

async function timesOf(url: string, n: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  try {
    return await sample(n, 100, () => ask(url, agent))
  } finally {
    agent.destroy()
  }
}

async function ask(url: string, agent: Agent): Promise<void> {
  const [answer] = await once(get(url, { agent }), 'response')
  let text = ''
  for await (const piece of answer) text += piece
  if (text !== 'hello') throw new Error(`${answer.statusCode}: ${text}`)
}

async function listening(url: string): Promise<void> {
  while ((await fetch(url)).status === 502);
}
