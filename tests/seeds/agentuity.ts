// What the programs of this document share: one server, whose runtime `bun:1` is made once per machine, and a client.
import type { Writable } from 'node:stream'
import { SandboxClient, type SandboxCreateOptions, type SandboxInstance } from '@islet/dialects/agentuity'
import { baseImageForTests } from '../../packages/server/src/image/testing.ts'
import { startSuite } from '../support/suite.ts'

const { imagesDir } = await baseImageForTests()
export const suite = await startSuite({ env: { ISLET_IMAGE_DIR: imagesDir } })
export const { url, key: apiKey } = suite.server
export const client = new SandboxClient({ url, apiKey })

/** Destroys the sandbox at the end of the block, as the document does in `finally`. */
export async function make(
  options: SandboxCreateOptions = { runtime: 'host' },
): Promise<SandboxInstance & AsyncDisposable> {
  const sandbox = await client.create(options)
  return Object.assign(sandbox, { [Symbol.asyncDispose]: () => sandbox.destroy() })
}

export async function read(stream: ReadableStream<Uint8Array>): Promise<string> {
  return new Response(stream).text()
}

export async function fetched(from: string | undefined): Promise<string> {
  if (from === undefined) throw new Error('there is no URL')
  const response = await fetch(from)
  if (!response.ok) throw new Error(`${from} answers ${response.status}`)
  return response.text()
}

/** Collects what is written. */
export async function sink(): Promise<{ stream: Writable; text(): string }> {
  const { Writable } = await import('node:stream')
  const chunks: Buffer[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(chunk)
      done()
    },
  })
  return { stream, text: () => Buffer.concat(chunks).toString() }
}
