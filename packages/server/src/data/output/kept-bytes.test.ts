import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Held } from '../../control/held.ts'
import { KeptBytes, LongText } from './kept-bytes.ts'

const MIB = 1024 * 1024
const directory = mkdtempSync(join(tmpdir(), 'islet-kept-bytes-'))
after(() => rmSync(directory, { recursive: true }))

let names = 0
const held = new Held({ eachBytes: 4 * MIB, allBytes: 100 * MIB })
const keep = () =>
  new KeptBytes({ path: join(directory, `${names++}`), disk: held.open('one'), hasRoom: () => true })
const fill = (kept: KeptBytes, bytes: Buffer, size: number) => {
  for (let at = 0; at < bytes.length; at += size) assert.ok(kept.append(bytes.subarray(at, at + size)))
}

test('long output comes back whole from an unlinked file, as text and as base64', () => {
  const bytes = Buffer.from('aé€😀\0\n'.repeat(50_000))
  for (const size of [7, 1000, 65_536, 200_001])
    for (const encoding of ['utf8', 'base64'] as const) {
      using kept = keep()
      fill(kept, bytes, size)
      assert.equal(kept.length, bytes.length)
      const text = kept.text(encoding)
      assert.ok(text instanceof LongText)
      assert.ok([...text].join('') === bytes.toString(encoding), `${encoding} by ${size}`)
    }
  assert.deepEqual(readdirSync(directory), [])
})

test('short output is a string', () => {
  using kept = keep()
  kept.append(Buffer.from('short'))
  assert.equal(kept.text('base64'), 'c2hvcnQ=')
})

test('a sandbox that keeps too much can keep no more until some of it is released', () => {
  const piece = Buffer.alloc(MIB)
  const first = keep()
  fill(first, Buffer.alloc(3 * MIB), MIB)
  using second = keep()
  assert.deepEqual(
    [second.append(piece), second.append(piece), second.append(Buffer.from('x'))],
    [true, false, false],
  )
  first[Symbol.dispose]()
  using third = keep()
  assert.equal(third.append(piece), true)
})

test('while the disk is full, output that does not fit in memory is refused with the reason', () => {
  using kept = new KeptBytes({
    path: join(directory, `${names++}`),
    disk: held.open('one'),
    hasRoom: () => false,
  })
  assert.deepEqual([kept.append(Buffer.alloc(1000)), kept.isDiskFull], [true, false])
  assert.deepEqual([kept.append(Buffer.alloc(MIB)), kept.isDiskFull], [false, true])
})
