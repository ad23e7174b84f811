// Numbers and names of files that no program expects: sizes of exabytes, times without a date, owners at the end of the range.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FileEntry } from '@islet/contract/client'
import type { Sandbox } from 'islet'
import { until } from '../coming-from/until.ts'
import { say } from '../support/shell.ts'
import { eachIsolation, type Target } from './attack.ts'

const LAST = '9999-12-31T23:59:59.'
const EPOCH = '1970-01-01T00:00:0'
/** Tells which it could make: filesystems differ in what they take. */
const MAKE = `
import os, sys
top = sys.argv[1]
os.makedirs(top, exist_ok=True)
os.chmod(top, 0o777)
def attempt(name, work):
    path = os.path.join(top, name)
    try:
        open(path, 'w').close()
        work(path)
        print(name)
    except (OSError, OverflowError):
        os.remove(path)
def size(number):
    return lambda path: os.truncate(path, number)
def time(seconds, nanoseconds=0):
    return lambda path: os.utime(path, ns=(0, seconds * 10**9 + nanoseconds))
attempt('size-52', size(2**52))
attempt('size-53', size(2**53))
attempt('size-62', size(2**62))
attempt('size-63', size(2**63 - 1))
attempt('time-year-10000', time(253402300800))
attempt('time-9e12', time(9 * 10**12 // 10**3))
attempt('time-beyond-dates', time(9 * 10**9, 999999999))
os.system(f"touch -d @9000000000000 {top}/time-touched 2>/dev/null && echo time-touched")
os.system(f"touch -d @4611686018427387904 {top}/time-62 2>/dev/null && echo time-62")
attempt('time-before-1970', time(-1, 1))
attempt('time-ancient', time(-9 * 10**9))
attempt('owner', lambda path: os.chown(path, 65534, 65534))
attempt('mode', lambda path: os.chmod(path, 0o7777))
for raw in (b'\\xff\\xfe', b'\\xed\\xa0\\x80', b'a\\nb', b'\\xc3(', b'.. ', b'\\x01' * 200):
    open(os.path.join(os.fsencode(top), b'name-' + raw), 'w').close()
os.symlink(b'\\xff' * 4000, os.path.join(os.fsencode(top), b'link'))
`

await eachIsolation({ area: 'numbers of files' }, (target) => {
  for (const [kind, top] of Object.entries({ 'a disk': '/root/numbers', memory: '/dev/shm/numbers' }))
    test(`sizes, times, owners and names at their limits, in ${kind}, break no call`, () =>
      onlyItself(target, kind, top))
})

async function onlyItself({ suite, attack }: Target, kind: string, top: string): Promise<void> {
  await using sandbox = await suite.create({ user: 'root' })
  const made = (await say(sandbox, `python3 - ${top} <<'END'\n${MAKE}\nEND`)).split('\n')
  assert.ok(made.includes('size-52'), made.join(' '))
  await attack(`files with impossible numbers, in ${kind}`, made.length, async () => {
    const listed = await sandbox.files.list(top)
    const byName = new Map(listed.map((entry) => [entry.name, entry]))
    for (const name of made) check(byName.get(name))
    for (const { path, name } of listed)
      if (made.includes(name)) check(await sandbox.files.stat(path, { follow: false }))
    await ownCalls(sandbox, top, made)
    assert.equal(await say(sandbox, 'echo still here'), 'still here')
  })
}

function check(entry: FileEntry | undefined): void {
  assert.ok(entry)
  const { name, sizeBytes, modifiedAt } = entry
  if (name === 'size-52') assert.equal(sizeBytes, 2 ** 52)
  else if (name.startsWith('size-')) assert.equal(sizeBytes, Number.MAX_SAFE_INTEGER, name)
  if (['time-year-10000', 'time-touched', 'time-62'].includes(name)) assertClamped(modifiedAt)
  if (name === 'time-before-1970' || name === 'time-ancient')
    assert.ok(modifiedAt.startsWith(EPOCH), modifiedAt)
}

/** Or what the filesystem made of it: some keep no more than 34 bits of seconds. */
function assertClamped(modifiedAt: string): void {
  assert.ok(modifiedAt.startsWith(LAST) || Date.parse(modifiedAt) < 2 ** 35 * 1000, modifiedAt)
}

async function ownCalls(sandbox: Sandbox, top: string, made: string[]): Promise<void> {
  const timed = made.filter((name) => !name.startsWith('size-'))
  for (const name of timed) {
    await sandbox.files.copy(`${top}/${name}`, `${top}/copy-of-${name}`)
    await sandbox.files.move(`${top}/copy-of-${name}`, `${top}/moved-${name}`)
  }
  if (made.includes('size-62')) {
    const part = await sandbox.files.readBytes(`${top}/size-62`, { start: 1000, end: 1009 })
    assert.deepEqual([...part], Array(10).fill(0))
  }
  const watcher = await sandbox.watcher.create(top, { includeContent: true })
  const seen: string[] = []
  watcher.on('change', ({ path }) => void seen.push(path))
  await say(sandbox, `touch -d @9000000000 ${top}/mode; rm -f ${top}/size-*; touch ${top}/new`)
  await until(() => seen.some((path) => path.endsWith('/new')))
  await watcher.destroy()
  for await (const _ of await sandbox.files.readArchive(top)) {
    // To its end.
  }
  const overlay = { source: top, target: '/root/overlaid', waitForCompletion: { initialDelayMs: 50 } }
  const { copyStatus, copyError, id } = await sandbox.files.overlay.create(overlay)
  assert.equal(copyStatus, 'complete', copyError)
  await sandbox.files.overlay.destroy(id)
}
