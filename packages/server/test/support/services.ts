// Services of one sandbox over HTTP, and a small web server to be one.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import {
  type Sandbox,
  type ServiceInfo,
  type ServiceLogs,
  type StartService,
  serviceInfo,
  serviceLogs,
} from '@islet/contract'
import { type TestApi, until } from './server.ts'

/** Listens on its second argument of 127.0.0.1; answers with the status in the file `status`, or not at all for 0. */
const WEB = `
import http.server, sys
class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status = int(open('status').read())
        if status == 0: import time; time.sleep(600)
        self.send_response(status); self.end_headers(); self.wfile.write(b'hello')
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Web).serve_forever()
`

export class TestServices {
  readonly api: TestApi
  readonly sandbox: Sandbox
  readonly url: string

  static async open(api: TestApi): Promise<TestServices> {
    const sandbox = await api.createSandbox({ env: { LAYER: 'sandbox', ONLY: 'sandbox' } })
    const services = new TestServices(api, sandbox)
    services.write('web.py', WEB)
    services.write('status', '200')
    return services
  }

  private constructor(api: TestApi, sandbox: Sandbox) {
    this.api = api
    this.sandbox = sandbox
    this.url = `/v1/sandboxes/${sandbox.id}/services`
  }

  post(input: StartService): Promise<Response> {
    return this.api.call('POST', this.url, input)
  }

  async start(input: StartService): Promise<ServiceInfo> {
    const response = await this.post(input)
    assert.equal(response.status, 201, await response.clone().text())
    return serviceInfo.parse(await response.json())
  }

  async get(name: string, query = ''): Promise<ServiceInfo> {
    return serviceInfo.parse(await (await this.api.call('GET', `${this.url}/${name}${query}`)).json())
  }

  /** Once it has the status; fails when it ends with another one. */
  async reach(name: string, status: ServiceInfo['status']): Promise<ServiceInfo> {
    const service = await this.get(name, `?wait=60000&status=${status}`)
    assert.equal(service.status, status, service.reason)
    return service
  }

  async until(name: string, isSo: (service: ServiceInfo) => boolean): Promise<ServiceInfo> {
    await until(async () => isSo(await this.get(name)))
    return this.get(name)
  }

  async verb(name: string, verb: 'stop' | 'restart'): Promise<ServiceInfo> {
    return serviceInfo.parse(await (await this.api.call('POST', `${this.url}/${name}/${verb}`)).json())
  }

  async delete(name: string): Promise<void> {
    assert.equal((await this.api.call('DELETE', `${this.url}/${name}`)).status, 204)
  }

  async logs(name: string, query = ''): Promise<ServiceLogs> {
    return serviceLogs.parse(await (await this.api.call('GET', `${this.url}/${name}/logs${query}`)).json())
  }

  async list(): Promise<ServiceInfo[]> {
    return ((await (await this.api.call('GET', this.url)).json()) as { services: ServiceInfo[] }).services
  }

  write(path: string, content: string): void {
    writeFileSync(join(this.sandbox.workdir, path), content)
  }

  read(path: string): string {
    try {
      return readFileSync(join(this.sandbox.workdir, path), 'utf8')
    } catch {
      return ''
    }
  }
}

/** A port of this machine that is in use until the end of the block. */
export async function takenPort(): Promise<AsyncDisposable & { port: number }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

export async function freePort(): Promise<number> {
  await using taken = await takenPort()
  return taken.port
}

export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
