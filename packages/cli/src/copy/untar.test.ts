import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { untar } from './untar.ts'

let directory = ''
const at = (...parts: string[]) => join(directory, ...parts)

beforeEach(() => {
  directory = fs.mkdtempSync(join(tmpdir(), 'islet-untar-'))
})
afterEach(() => fs.rmSync(directory, { recursive: true, force: true }))

for (const format of ['gnu', 'pax', 'ustar']) {
  test(`a tar of GNU tar in format ${format} is unpacked unchanged`, async () => {
    const long = 'n'.repeat(format === 'ustar' ? 90 : 180)
    fs.mkdirSync(at('in', 'sub', 'empty'), { recursive: true })
    fs.writeFileSync(at('in', 'sub', long), 'x'.repeat(70_000))
    fs.writeFileSync(at('in', 'tool'), '#!/bin/sh\n', { mode: 0o755 })
    fs.symlinkSync('sub/nowhere', at('in', 'link'))
    fs.linkSync(at('in', 'tool'), at('in', 'hard'))
    fs.writeFileSync(at('in', 'zero'), '')
    const tar = execFileSync('tar', [`--format=${format}`, '-C', at('in'), '-c', '.'])
    await untar(inPieces(tar), at('out'))
    execFileSync('diff', ['-r', '--no-dereference', at('in'), at('out')])
    assert.equal(fs.statSync(at('out', 'tool')).mode & 0o777, 0o755)
  })
}

test('setuid bits are dropped', async () => {
  await untar(inPieces(entry('tool', { mode: 0o4755, content: 'x' })), at('out'))
  assert.equal(fs.statSync(at('out', 'tool')).mode & 0o7777, 0o755)
})

test('an entry outside the directory stops the extraction', async () => {
  for (const name of ['../evil', '/evil', 'a/../../evil']) {
    await assert.rejects(untar(inPieces(entry(name, { content: 'x' })), at('out')), {
      code: 'unsafe_archive',
    })
  }
  assert.ok(!fs.existsSync(at('evil')))
})

test('nothing is written through a link of the archive or an existing link', async () => {
  fs.mkdirSync(at('outside'))
  fs.mkdirSync(at('out'))
  fs.symlinkSync(at('outside'), at('out', 'there'))
  const tar = Buffer.concat([
    entry('link', { type: '2', target: at('outside') }),
    entry('link/evil', { content: 'x' }),
    entry('there/evil', { content: 'x' }),
  ])
  await untar(inPieces(tar), at('out')).catch(() => {})
  assert.deepEqual(fs.readdirSync(at('outside')), [])
})

test('a hard link to something outside is refused', async () => {
  fs.writeFileSync(at('secret'), 's')
  const tar = entry('x', { type: '1', target: '../secret' })
  await assert.rejects(untar(inPieces(tar), at('out')), { code: 'unsafe_archive' })
})

test('devices are skipped and named', async () => {
  const { skipped } = await untar(inPieces(entry('disk', { type: '4' })), at('out'))
  assert.deepEqual(skipped, ['disk'])
  assert.deepEqual(fs.readdirSync(at('out')), [])
})

test('an archive that ends early is an error', async () => {
  const tar = entry('x', { content: 'y'.repeat(2000) }).subarray(0, 1000)
  await assert.rejects(untar(inPieces(tar), at('out')), { code: 'bad_archive' })
})

function entry(
  name: string,
  {
    type = '0',
    content = '',
    target = '',
    mode = 0o644,
  }: { type?: string; content?: string; target?: string; mode?: number },
): Buffer {
  const header = Buffer.alloc(512)
  header.write(name, 0)
  header.write(mode.toString(8).padStart(7, '0'), 100)
  header.write(content.length.toString(8).padStart(11, '0'), 124)
  header.write('0'.repeat(11), 136)
  header.write(type, 156)
  header.write(target, 157)
  header.write('ustar', 257)
  const body = Buffer.alloc(Math.ceil(content.length / 512) * 512)
  body.write(content)
  return Buffer.concat([header, body])
}

/** Odd sizes, so that every boundary is crossed somewhere. */
async function* inPieces(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 777) yield bytes.subarray(start, start + 777)
}
