// The whole real server on a loopback port, with engine `process` and a data directory that goes away with it.
import assert from 'node:assert/strict'
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CreatedSandbox, CreateSandbox, ErrorBody, ProcessInfo, StartProcess } from '@islet/contract'
import { loadConfig, startServer } from '../../src/app.ts'
import { createLog } from '../../src/log.ts'

/** However slow the machine is, what takes longer than this does not come. */
const UNTIL_MS = 120_000

export const TEST_KEY = `islet_${'t'.repeat(43)}`

export interface TestApi extends AsyncDisposable {
  url: string
  port: number
  dataDir: string
  /** Every line of the log, down to trace. */
  logged: string[]
  /** A regular shutdown: drains, then ends everything. Calling it twice is fine. */
  close(): Promise<void>
  /** With the key and, for an object body, as JSON. */
  call(method: string, path: string, body?: unknown, init?: RequestInit): Promise<Response>
  createSandbox(input?: CreateSandbox): Promise<CreatedSandbox>
  start(sandboxId: string, input: StartProcess): Promise<ProcessInfo>
  process(sandboxId: string, processId: string): Promise<ProcessInfo>
}

export interface TestApiOptions {
  host?: string
  port?: number
  /** For running requests when it closes. Default: none. */
  drainTimeoutMs?: number
  imageDir?: string
  importDirs?: string
  corsOrigins?: string
  publicUrl?: string
  maxSandboxes?: number
  previewDomain?: string
  previewPorts?: string
  storeTotalBytes?: string
}

export async function startTestApi(options: TestApiOptions = {}): Promise<TestApi> {
  const dataDir = mkdtempSync(join(tmpdir(), 'islet-api-'))
  const logged: string[] = []
  const log = createLog({ level: 'trace', destination: { write: (line) => void logged.push(line) } })
  const { port = 0, drainTimeoutMs = 0, ...others } = options
  const overrides = {
    ...others,
    engine: 'process',
    dataDir,
    port,
    drainTimeoutMs: `${drainTimeoutMs}ms`,
  }
  const config = loadConfig({ env: { ISLET_API_KEY: TEST_KEY }, overrides })
  const server = await startServer(config, { log, ephemeral: true }).catch((error) => {
    rmSync(dataDir, { recursive: true })
    throw error
  })
  const call: TestApi['call'] = (method, path, body, init = {}) => {
    const isRaw = body === undefined || typeof body === 'string' || body instanceof Uint8Array
    const headers = new Headers({
      Authorization: `Bearer ${TEST_KEY}`,
      ...(!isRaw && { 'Content-Type': 'application/json' }),
    })
    new Headers(init.headers).forEach((value, name) => {
      headers.set(name, value)
    })
    const sent = body === undefined ? init.body : isRaw ? body : JSON.stringify(body)
    return fetch(server.url + path, { ...init, method, headers, body: sent } as RequestInit)
  }
  const made = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await call(method, path, body)
    assert.ok(response.ok, `${method} ${path}: ${response.status}`)
    return (await response.json()) as T
  }
  const close = () => server.close({ all: true })
  return {
    url: server.url,
    port: Number(new URL(server.url).port),
    dataDir,
    logged,
    close,
    call,
    createSandbox: (input = {}) => made('POST', '/v1/sandboxes', input),
    start: (sandboxId, input) => made('POST', `/v1/sandboxes/${sandboxId}/processes`, input),
    process: (sandboxId, processId) => made('GET', `/v1/sandboxes/${sandboxId}/processes/${processId}`),
    async [Symbol.asyncDispose]() {
      await close()
      assert.deepEqual(processesIn(dataDir), [], 'a command outlived its server')
      assert.deepEqual(slotsOf(dataDir), [], 'something of the server stayed on the machine')
      rmSync(dataDir, { recursive: true, force: true })
      assert.ok(!existsSync(dataDir))
    },
  }
}

export async function errorOf(response: Response): Promise<ErrorBody['error'] & { status: number }> {
  return { ...((await response.json()) as ErrorBody).error, status: response.status }
}

/** Waits until the condition holds. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + UNTIL_MS
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`It is not so after ${UNTIL_MS} ms: ${isSo}`)
    await pause(5)
  }
}

/** Waits until a number that was growing, or shrinking, has stopped to; answers with it. */
export async function settled(read: () => number | Promise<number>): Promise<number> {
  for (let last = await read(); ; ) {
    for (let same = 0; same < 10; same++) {
      await pause(20)
      const now = await read()
      if (now !== last) same = -1
      last = now
    }
    return last
  }
}

/** The first process of a sandbox is the parent of its commands. */
export function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

/** The processes whose working directory is there. */
function processesIn(directory: string): number[] {
  return pids().filter((pid) => linkOf(`/proc/${pid}/cwd`).startsWith(directory))
}

/** The resources of the machine that servers hold: see instance.ts. */
function slotsOf(dataDir: string): string[] {
  return globSync('/run/islet/*/owner.*.json').filter((path) => {
    try {
      return readFileSync(path, 'utf8').includes(dataDir)
    } catch {
      return false // another server's, and gone
    }
  })
}

/** Whether a process of this machine but this one has the file open. */
export function isHeldOpen(path: string): boolean {
  return pids()
    .filter((pid) => pid !== process.pid)
    .some((pid) => descriptors(pid).some((fd) => linkOf(`/proc/${pid}/fd/${fd}`) === path))
}

const pids = (): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0)

function descriptors(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`)
  } catch {
    return [] // it has ended
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
