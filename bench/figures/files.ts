// 256 MB up and down through the API, and what the server's memory does meanwhile.
import { readFileSync } from 'node:fs'
import type { Figure } from '../figure.ts'
import { round, summarise } from '../measure.ts'

const MB = 1_000_000
const SIZE = 256 * MB
const CHUNK = new Uint8Array(1024 * 1024).fill(7)

export const filesFigure: Figure = async ({ create, server, quick }) => {
  const sandbox = await create()
  const before = memoryMb(server.pid)
  let peak = before
  const watch = setInterval(() => {
    peak = Math.max(peak, memoryMb(server.pid))
  }, 20)
  const up: number[] = []
  const down: number[] = []
  for (let index = 0; index < (quick ? 2 : 5); index++) {
    let started = performance.now()
    await sandbox.files.write('/tmp/large', content())
    up.push(SIZE / MB / ((performance.now() - started) / 1000))
    started = performance.now()
    let bytes = 0
    for await (const chunk of await sandbox.files.readStream('/tmp/large')) bytes += chunk.length
    if (bytes !== SIZE) throw new Error(`read ${bytes} of ${SIZE} bytes`)
    down.push(SIZE / MB / ((performance.now() - started) / 1000))
  }
  clearInterval(watch)
  await sandbox.kill()
  return [
    { figure: 'file up, 256 MB', islet: summarise(up), unit: 'MB/s' },
    { figure: 'file down, 256 MB', islet: summarise(down), unit: 'MB/s' },
    {
      figure: 'server memory while transferring: growth',
      islet: round(peak - before),
      unit: 'MB',
      note: `from ${round(before)} MB`,
    },
  ]
}

async function* content(): AsyncGenerator<Uint8Array> {
  for (let left = SIZE; left > 0; left -= CHUNK.length)
    yield left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK
}

function memoryMb(pid: number): number {
  const match = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(match?.[1] ?? 0) / 1000
}
