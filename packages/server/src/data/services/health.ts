// One health check: a GET through a dialed connection. Only the head of the answer is read.
import { boundHead } from '../../guest/dial/answer-head.ts'
import type { Guest } from '../../guest/guest.ts'
import { request } from '../../lib/http.ts'

interface Health {
  healthy: boolean
  /** A short text for people. */
  status: string
}

interface HealthTarget {
  host: '127.0.0.1' | '::1'
  port: number
  path: string
  timeoutMs: number
}

const MAX_HEAD_BYTES = 16 * 1024

/** An answer with a status below 400 is healthy, also a redirect. Rejects only when `signal` aborts. */
export async function checkHealth(
  guest: Pick<Guest, 'dial'>,
  target: HealthTarget,
  signal: AbortSignal,
): Promise<Health> {
  const timeout = AbortSignal.timeout(target.timeoutMs)
  try {
    const status = await statusOf(guest, target, AbortSignal.any([signal, timeout]))
    return { healthy: status < 400, status: `HTTP ${status}` }
  } catch (error) {
    signal.throwIfAborted()
    const text = timeout.aborted ? `no answer within ${target.timeoutMs} ms` : (error as Error).message
    return { healthy: false, status: text.slice(0, 200) }
  }
}

async function statusOf(
  guest: Pick<Guest, 'dial'>,
  { host, port, path }: HealthTarget,
  signal: AbortSignal,
): Promise<number> {
  const socket = await guest.dial(port, { host, signal })
  try {
    return await new Promise<number>((resolve, reject) => {
      const asked = request({
        createConnection: () => socket,
        path,
        headers: { Host: `localhost:${port}`, 'User-Agent': 'islet-health-check', Connection: 'close' },
        maxHeaderSize: MAX_HEAD_BYTES,
        signal,
      })
      boundHead(asked, { maxBytes: MAX_HEAD_BYTES })
      asked.on('response', ({ statusCode = 0 }) => resolve(statusCode))
      asked.on('upgrade', () => reject(new Error('the answer changes the protocol')))
      asked.on('error', reject)
      asked.end()
    })
  } finally {
    socket.destroy()
  }
}
