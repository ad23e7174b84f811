// The real API on a real loopback port, over services that live in memory.
import { createLog, type Log } from '../log.ts'
import { createApi } from './api.ts'
import type { ApiDeps } from './route.ts'
import { type Served, type ServeOptions, serveApi } from './serve.ts'
import { MemoryControl } from './testing/control.ts'
import { MemoryFiles } from './testing/files.ts'
import { MemoryImages } from './testing/images.ts'
import { MemoryProcesses } from './testing/processes.ts'

export const TEST_KEY = `islet_${'t'.repeat(43)}`

export interface TestApi extends AsyncDisposable {
  url: string
  port: number
  served: Served
  control: MemoryControl
  processes: MemoryProcesses
  files: MemoryFiles
  images: MemoryImages
  /** What was compared with the key. */
  candidates: string[]
  logged: string[]
  drain(): void
  /** With the key and, for an object body, as JSON. */
  call(method: string, path: string, body?: unknown, init?: RequestInit): Promise<Response>
}

export async function startTestApi(options: Partial<ServeOptions> & Partial<ApiDeps> = {}): Promise<TestApi> {
  const control = new MemoryControl()
  const processes = new MemoryProcesses(control)
  const files = new MemoryFiles(control)
  const images = new MemoryImages()
  const candidates: string[] = []
  const logged: string[] = []
  const key = {
    keyMatches: (candidate: string) => {
      candidates.push(candidate)
      return candidate === TEST_KEY
    },
  }
  const log: Log = createLog({
    level: 'trace',
    destination: { write: (line: string) => void logged.push(line) },
  })
  const { host = '127.0.0.1', port = 0, headersTimeoutMs, ...deps } = options
  const api = createApi({ control, processes, files, images, key, log, config: { host }, ...deps })
  const served = await serveApi(api, { host, port, ...(headersTimeoutMs && { headersTimeoutMs }) })
  const { url } = served
  return {
    url,
    port: served.port,
    served,
    control,
    processes,
    files,
    images,
    candidates,
    logged,
    drain: api.drain,
    call: (method, path, body, init = {}) => {
      const isRaw = body === undefined || typeof body === 'string' || body instanceof Uint8Array
      const headers = new Headers({
        Authorization: `Bearer ${TEST_KEY}`,
        ...(!isRaw && { 'Content-Type': 'application/json' }),
      })
      new Headers(init.headers).forEach((value, name) => {
        headers.set(name, value)
      })
      const sent = body === undefined ? init.body : isRaw ? body : JSON.stringify(body)
      return fetch(url + path, { ...init, method, headers, body: sent } as RequestInit)
    },
    [Symbol.asyncDispose]: () => served.close(),
  }
}

/** Waits for what another part of the program is about to do; the test's own timeout ends it. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2))
}
