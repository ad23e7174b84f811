import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { FileWatcher } from 'islet'
import { until } from '../coming-from/until.ts'
import { slotOf } from '../support/leftovers.ts'
import { WITHOUT_WARM } from '../support/server.ts'
import { say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite({ env: WITHOUT_WARM })
const FANOUT = 250
const DIRECTORIES = 200 * FANOUT

function record(watcher: FileWatcher): string[] {
  const seen: string[] = []
  watcher.on('change', (change) => {
    const { event, path, content, contentOmitted } = change
    seen.push([event, path, content ?? contentOmitted].filter((word) => word !== undefined).join(' '))
  })
  watcher.on('overflow', () => void seen.push('overflow'))
  return seen
}

/** The first process of the sandbox made last, as this machine sees it. */
function newestCell(): number {
  const found = globSync(`/run/islet/${slotOf(suite.server.dataDir)}/s/*/cell.json`)
  const cells = found.map((path) => JSON.parse(readFileSync(path, 'utf8')))
  return cells.toSorted((a, b) => (a.createdAt < b.createdAt ? 1 : -1))[0].process.pid
}

test('fifty thousand directories are watched, or the setting in the way is named', async () => {
  await using sandbox = await suite.create()
  const make = `mkdir "tree"; for $d (1..200) { mkdir "tree/$d"; mkdir "tree/$d/$_" for 1..${FANOUT - 1} }`
  await say(sandbox, ['perl', '-e', make], { cwd: '/dev/shm' })
  const allowed = Number(readFileSync('/proc/sys/fs/inotify/max_user_watches', 'utf8'))
  if (allowed < DIRECTORIES) {
    await assert.rejects(sandbox.watcher.create('/dev/shm/tree'), {
      code: 'limit_exceeded',
      message: /max_user_watches/,
    })
    return
  }
  const watcher = await sandbox.watcher.create('/dev/shm/tree')
  const seen = record(watcher)
  await say(sandbox, `cd /dev/shm/tree; touch 200/${FANOUT - 1}/file; mv 1 renamed; touch renamed/7/file`)
  await until(() => seen.includes(`add ${watcher.getPath()}/200/${FANOUT - 1}/file`))
  await until(() => seen.includes(`add ${watcher.getPath()}/renamed/7/file`))
  await watcher.destroy()
})

test('a kernel that allows no more watches is a limit that names its setting', async () => {
  await using sandbox = await suite.create()
  await say(sandbox, 'mkdir few many; cd many; seq 50 | xargs mkdir')
  // The limit of this one sandbox: that of its own user namespace.
  const enter = ['--target', String(newestCell()), '--user', 'sh', '-c']
  execFileSync('nsenter', [...enter, 'echo 20 > /proc/sys/user/max_inotify_watches'])
  const watcher = await sandbox.watcher.create('few')
  await assert.rejects(sandbox.watcher.create('many'), {
    code: 'limit_exceeded',
    message: /max_user_watches/,
  })
  // One that works until there are too many stops, and says so.
  const seen: string[] = []
  watcher.on('error', (error) => void seen.push((error as { code: string }).code))
  await say(sandbox, 'cd few; seq 50 | xargs mkdir')
  await until(() => seen.length > 0)
  assert.deepEqual(seen, ['limit_exceeded'])
  const { status, reason } = await sandbox.watcher.retrieve(watcher.getId())
  assert.equal(status, 'stopped')
  assert.match(reason ?? '', /max_user_watches/)
  execFileSync('nsenter', [...enter, 'echo 1 > /proc/sys/user/max_inotify_instances'])
  const refused = Promise.all([sandbox.watcher.create('/tmp'), sandbox.watcher.create('/tmp')])
  await assert.rejects(refused, { code: 'limit_exceeded', message: /max_user_instances/ })
})

test('links lead nowhere: neither events nor content of what is outside', async () => {
  await using sandbox = await suite.create()
  await say(
    sandbox,
    'mkdir -p watched/real outside; echo secret > outside/file; ln -s "$PWD/outside" watched/before',
  )
  const watcher = await sandbox.watcher.create('watched', { includeContent: true })
  const root = watcher.getPath()
  const seen = record(watcher)
  await say(
    sandbox,
    `cd watched; ln -s /etc/passwd passwd; ln -s ../outside/file inside; ln -s ../outside late
     rm -r real; ln -s ../outside real; touch ../outside/new before/newer real/newest; touch end`,
  )
  await until(() => seen.includes(`add ${root}/end `) || seen.includes(`add ${root}/end`))
  for (const name of ['passwd', 'inside', 'late', 'real'])
    assert.ok(seen.includes(`add ${root}/${name} unreadable`), `${name}: ${seen}`)
  assert.ok(!seen.some((line) => /secret|new|\/(before|late|real)\//.test(line)), seen.join('\n'))
})

test('a file that is saved is one change, however it is saved, and no file on its way is told', async () => {
  await using sandbox = await suite.create()
  await say(sandbox, 'mkdir saved; echo 1 > saved/old; echo 1 > outside')
  const watcher = await sandbox.watcher.create('saved', { includeContent: true })
  const root = watcher.getPath()
  const seen = record(watcher)
  const told = async (save: () => Promise<unknown>, ...events: string[]) => {
    await save()
    await until(() => seen.includes(events.at(-1)!))
    assert.deepEqual(seen.splice(0), events)
  }
  await told(() => sandbox.files.write('saved/old', '2'), `change ${root}/old 2`)
  await told(() => sandbox.files.write('saved/new', '3'), `add ${root}/new 3`)
  await told(() => sandbox.files.write('saved/new', '4'), `change ${root}/new 4`)
  await told(() => say(sandbox, 'mv outside saved/old'), `change ${root}/old 1\n`)
  await say(sandbox, 'sed -i s/1/5/ saved/old')
  await until(() => seen.includes(`change ${root}/old 5\n`))
  assert.ok(!seen.includes(`add ${root}/old 5\n`), seen.join('\n'))
})

test('events held while no client is connected are limited', async () => {
  await using sandbox = await suite.create()
  await say(sandbox, 'mkdir busy; yes | head -c 900000 > big')
  const status = () => readFileSync(`/proc/${suite.server.pid}/status`, 'utf8')
  const memory = () => Number(/VmRSS:\s+(\d+)/.exec(status())![1])
  const before = memory()
  const route = `/v1/sandboxes/${sandbox.id}/watchers`
  await suite.server.post(route, { path: 'busy', includeContent: true })
  const plain = await sandbox.watcher.create('busy')
  const seen = record(plain)
  // 540 MB of content come by.
  await say(sandbox, ['perl', '-e', 'link "big", "busy/$_" or die for 1..600'])
  await until(() => seen.includes(`add ${plain.getPath()}/600`))
  let most = 0
  for (let same = 0; same < 20; same++) {
    const grown = memory() - before
    if (grown > most) same = 0
    most = Math.max(most, grown)
    await setTimeout(50)
  }
  assert.ok(most < 256 * 1024, `grew by ${most} KiB`)
  await plain.destroy()
})
