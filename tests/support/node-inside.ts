// Node and packages of this repository inside a sandbox, which has no network and maybe no Node of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Sandbox } from 'islet'
import { root } from './server.ts'

/** Puts `node` on the path. */
export async function giveNode(sandbox: Sandbox): Promise<void> {
  const content = Readable.toWeb(createReadStream(process.execPath)) as ReadableStream<Uint8Array>
  await sandbox.files.write('/usr/local/bin/node', content, { mode: 0o755 })
}

/** Copies packages to `<directory>/node_modules`; by default those of this repository. */
export async function givePackages(
  sandbox: Sandbox,
  directory: string,
  names: readonly string[],
  modules = join(root, 'node_modules'),
): Promise<void> {
  const tar = spawn('tar', ['-czf', '-', '-C', modules, ...names], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(tar, 'exit')
  const archive = Readable.toWeb(tar.stdout) as ReadableStream<Uint8Array>
  await sandbox.files.writeArchive(`${directory}/node_modules`, archive)
  const [code] = await ended
  if (code !== 0) throw new Error(`tar ended with ${code}`)
}
