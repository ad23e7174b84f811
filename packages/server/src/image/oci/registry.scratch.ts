// For tests: a real registry on loopback, behind a proxy where a test can record, delay, damage and refuse requests.
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { needs } from '../../../../../tests/support/programs.ts'
import { type TarEntry, tarOf } from '../scratch.ts'

needs('docker-registry', 'skopeo', 'umoci')

export interface Registry extends AsyncDisposable {
  /** host:port of the proxy. */
  address: string
  /** Every requested blob. */
  blobs: string[]
  /** The proxy's reaction to the next requests for blobs. */
  door: 'open' | 'stall' | 'spoil' | 'refuse'
  /** The Authorization header that is accepted while the proxy refuses others. */
  guest: string | undefined
  /** Makes an image of these layers and pushes it. */
  push(name: string, layers: readonly (readonly TarEntry[])[], config?: readonly string[]): Promise<void>
  /** Puts an index under `name` that offers the image of `from` for one architecture. */
  pushIndex(name: string, from: string, architecture: string): Promise<void>
}

export async function startRegistry(dir: string): Promise<Registry> {
  const port = await freePort()
  const config = join(dir, 'registry.yml')
  await mkdir(join(dir, 'registry'), { recursive: true })
  const log = '{level: error, accesslog: {disabled: true}}'
  await writeFile(
    config,
    `version: 0.1\nlog: ${log}\nstorage: {filesystem: {rootdirectory: ${join(dir, 'registry')}}}\nhttp: {addr: "127.0.0.1:${port}"}\n`,
  )
  const child = spawn('docker-registry', ['serve', config], { stdio: 'ignore' })
  await answers(`http://127.0.0.1:${port}/v2/`)

  const stalled = new Set<http.ServerResponse>()
  const door = http.createServer((request, response) => {
    const isBlob = request.method === 'GET' && /\/blobs\/sha256:/.test(request.url ?? '')
    if (isBlob) registry.blobs.push(request.url!)
    if (
      registry.door === 'refuse' &&
      (registry.guest === undefined || request.headers.authorization !== registry.guest)
    )
      return void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
    const upstream = http.request(
      { port, host: '127.0.0.1', method: request.method, path: request.url, headers: request.headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        const isLarge = isBlob && Number(answer.headers['content-length']) > 10_000
        if (isLarge && registry.door === 'stall') {
          answer.once('data', (chunk) => response.write(chunk))
          stalled.add(response)
        } else if (isLarge && registry.door === 'spoil') {
          answer.on('data', (chunk: Buffer) => response.write(Buffer.from(chunk).fill(0, chunk.length >> 1)))
          answer.on('end', () => response.end())
        } else answer.pipe(response)
      },
    )
    request.pipe(upstream)
  })
  door.listen(0, '127.0.0.1')
  await once(door, 'listening')

  const registry: Registry = {
    address: `127.0.0.1:${(door.address() as AddressInfo).port}`,
    blobs: [],
    door: 'open',
    guest: undefined,
    async push(name, layers, options = []) {
      const layout = join(dir, `push-${name.replaceAll(/\W/g, '-')}-${Date.now()}`)
      const image = `${layout}:image`
      execFileSync('umoci', ['init', '--layout', layout])
      execFileSync('umoci', ['new', '--image', image])
      for (const [i, layer] of layers.entries()) {
        await writeFile(join(layout, `${i}.tar`), tarOf(layer))
        execFileSync('umoci', ['raw', 'add-layer', '--image', image, join(layout, `${i}.tar`)])
      }
      if (options.length > 0) execFileSync('umoci', ['config', '--image', image, ...options])
      const to = `docker://127.0.0.1:${port}/${name}`
      execFileSync('skopeo', [
        '--insecure-policy',
        'copy',
        '--quiet',
        '--dest-tls-verify=false',
        `oci:${image}`,
        to,
      ])
    },
    async pushIndex(name, from, architecture) {
      const url = (reference: string) => {
        const [repository, tag] = reference.split(':')
        return `http://127.0.0.1:${port}/v2/${repository}/manifests/${tag}`
      }
      const mediaType = 'application/vnd.oci.image.manifest.v1+json'
      const manifest = Buffer.from(
        await (await fetch(url(from), { headers: { accept: mediaType } })).arrayBuffer(),
      )
      const digest = `sha256:${createHash('sha256').update(manifest).digest('hex')}`
      const entry = { mediaType, digest, size: manifest.length, platform: { os: 'linux', architecture } }
      const type = 'application/vnd.oci.image.index.v1+json'
      const body = JSON.stringify({ schemaVersion: 2, mediaType: type, manifests: [entry] })
      const answer = await fetch(url(name), { method: 'PUT', headers: { 'content-type': type }, body })
      if (!answer.ok) throw new Error(await answer.text())
    },
    async [Symbol.asyncDispose]() {
      for (const response of stalled) response.destroy()
      door.closeAllConnections()
      door.close()
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
  return registry
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function answers(url: string): Promise<void> {
  for (let i = 0; i < 200; i++) {
    const response = await fetch(url).catch(() => undefined)
    if (response?.ok) return
    await sleep(50)
  }
  throw new Error(`nothing answers at ${url}`)
}
