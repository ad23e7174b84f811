// Files up, down and away: through the file API, and by commands inside.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { unless } from '../faults/state-world.ts'
import type { Client } from './client.ts'
import { apply, hash, type Known, without } from './model.ts'

const NAMES = ['a', 'b', 'c d', 'deep/e', 'deep/er/f', 'deep/er/g']
const LARGE_BYTES = 4 * 1024 ** 2

export async function writeByCommand(client: Client, sandbox: Known): Promise<void> {
  const [name, content, number] = [client.random.pick(NAMES)!, client.text(), client.tag()]
  // One that was cut off may still be at it when it is repeated.
  const script =
    'cd ~/m && mkdir -p "$(dirname "$1")" && printf %s "$2" > "$1.$3.$$.tmp" && mv "$1.$3.$$.tmp" "$1"'
  await client.exec('write by a command', sandbox, `mkdir -p ~/m && ${script}`, name, content, number)
  written(sandbox, name, hash(content))
}

export async function upload(client: Client, sandbox: Known): Promise<void> {
  const name = client.random.pick(NAMES)!
  const size = client.random.chance(0.15) ? LARGE_BYTES : 20_000
  const content = noise(client.tag(), Math.floor(client.random.next() * size))
  await client.surely('upload', sandbox, 'PUT', `${pathOf(sandbox, name)}&parents=true`, content)
  written(sandbox, name, hash(content))
}

/** Reads a file whose content is known. */
export async function download(client: Client, sandbox: Known): Promise<void> {
  if (sandbox.states.length > 1) return
  const name = client.random.pick(NAMES)!
  const expected = sandbox.states[0]!.files[name]
  const bytes = await client
    .surely<Buffer>('download', sandbox, 'GET', pathOf(sandbox, name), undefined, { raw: true })
    .catch(unless('file_not_found'))
  assert.equal(bytes && hash(bytes), expected, `${name} of ${sandbox.id}`)
}

export async function removeFile(client: Client, sandbox: Known): Promise<void> {
  const name = client.random.chance(0.3) ? 'deep' : client.random.pick(NAMES)!
  if (client.random.chance(0.5)) await client.exec('remove by a command', sandbox, 'rm -rf ~/m/"$1"', name)
  else
    await client
      .surely('remove a file', sandbox, 'DELETE', `${pathOf(sandbox, name)}&recursive=true`)
      .catch(unless('file_not_found'))
  apply(sandbox, (state) => ({
    ...state,
    files: without(state.files, (path) => path === name || path.startsWith(`${name}/`)),
  }))
}

function written(sandbox: Known, name: string, content: string): void {
  apply(sandbox, (state) => ({ ...state, files: { ...state.files, [name]: content } }))
}

const pathOf = ({ id }: Known, name: string) =>
  `/sandboxes/${id}/files?path=${encodeURIComponent(`m/${name}`)}`

/** Bytes of all kinds, the same for the same seed. */
function noise(seed: string, length: number): Buffer {
  const block = createHash('sha512').update(seed).digest()
  const bytes = Buffer.alloc(length, block)
  for (let at = 0; at + 8 <= length; at += 4096) bytes.writeBigUInt64LE(BigInt(at), at)
  return bytes
}
