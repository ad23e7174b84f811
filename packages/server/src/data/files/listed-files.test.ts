import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Held } from '../../control/held.ts'
import type { Entry } from '../../guest/guest.ts'
import { ListedFiles } from './listed-files.ts'

const MIB = 1024 * 1024
const COUNT = 20_000
const directory = mkdtempSync(join(tmpdir(), 'islet-listed-files-'))
after(() => rmSync(directory, { recursive: true }))

const open = (path: string, held = new Held({ eachBytes: 4 * MIB, allBytes: 4 * MIB })) =>
  new ListedFiles('/work', { path, hold: held.open('one'), hasRoom: () => true })

const entry = (path: string): Entry => ({
  path,
  type: 'symlink',
  sizeBytes: 1,
  mode: 0o644,
  uid: 0,
  gid: 0,
  mtimeMs: 0,
  target: '"\n😀',
})

/** In an order that is not theirs, in batches as the guest sends them. */
function fill(listed: ListedFiles): string[] {
  const paths = Array.from({ length: COUNT }, (_, n) => `é/${(n * 7919) % COUNT}`)
  for (let at = 0; at < COUNT; at += 500) listed.add(paths.slice(at, at + 500).map(entry))
  return paths.sort().map((path) => `/work/${path}`)
}

/** Files of ours that are open and have no name any more. */
const nameless = () =>
  readdirSync('/proc/self/fd')
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`)
      } catch {
        return ''
      }
    })
    .filter((path) => path.startsWith(directory) && path.endsWith(' (deleted)'))

test('a long list waits in an unlinked file and is read in the order of its paths', () => {
  const listed = open(join(directory, 'new', 'list'))
  const paths = fill(listed)
  assert.equal(nameless().length, 1)
  assert.deepEqual(readdirSync(join(directory, 'new')), [])
  const found = [...listed]
  assert.deepEqual(
    found.map(({ path }) => path),
    paths,
  )
  assert.deepEqual([found[0]!.target, found[0]!.mode, found[0]!.name], ['"\n😀', '0644', '0'])
  listed[Symbol.dispose]()
  assert.deepEqual(nameless(), [])
})

test('a list that begins again drops its earlier entries', () => {
  using listed = open(join(directory, 'again'))
  fill(listed)
  listed.clear()
  assert.deepEqual([...listed], [])
  assert.deepEqual([fill(listed), nameless().length], [Array.from(listed, ({ path }) => path), 1])
})

test('a list stays in memory if no file can be created', () => {
  using listed = open('/dev/null/list')
  const paths = fill(listed)
  assert.deepEqual(
    Array.from(listed, ({ path }) => path),
    paths,
  )
})

test('a second long list of a sandbox is refused until the first is read', () => {
  const held = new Held({ eachBytes: 4 * MIB, allBytes: 4 * MIB })
  using first = open(join(directory, 'first'), held)
  fill(first)
  using second = open(join(directory, 'second'), held)
  assert.throws(() => fill(second), { code: 'too_many_requests' })
  first[Symbol.dispose]()
  second.clear()
  assert.equal(fill(second).length, COUNT)
})
