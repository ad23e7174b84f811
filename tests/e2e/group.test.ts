// A server of root that other users of the machine may use: the members of its group, through the key and nothing else. And its end.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  globSync,
  lstatSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { asUser } from '../support/as-user.ts'
import { slotOf, tracesOf } from '../support/leftovers.ts'
import { cleanEnv, ISLET, TestServer } from '../support/server.ts'

const run = promisify(execFile)
const GROUP = `islet-test-${process.pid}`
const STRANGER = 47_113 // the uid of nobody in particular
let server: TestServer
let gid: number

before(async () => {
  execFileSync('groupadd', ['--system', GROUP])
  gid = Number(execFileSync('getent', ['group', GROUP], { encoding: 'utf8' }).split(':')[2])
  server = new TestServer({ env: { ISLET_GROUP: GROUP, ISLET_DEFAULT_RUNTIME: 'host' } })
  writeFileSync(join(server.dataDir, 'config.json'), '{}', { mode: 0o644 })
  chmodSync(join(server.dataDir, 'config.json'), 0o644)
  await server.start()
})

after(async () => {
  try {
    execFileSync('groupdel', [GROUP], { stdio: 'ignore' })
  } catch {
    // a test has removed it
  }
  if (existsSync(server.dataDir)) await server[Symbol.asyncDispose]()
})

test('a member of the group uses the server by its address, with nothing set but that and where its data are', async () => {
  const sandbox = JSON.parse((await islet([gid], 'create', '--name', 'shared', '--network', '--json')).stdout)
  const { stdout } = await islet([gid], 'exec', sandbox.id, '--', 'id', '-un')
  assert.equal(stdout, 'user\n')
})

test("root's key is not sent to another address than the default one, unless its directory is named", async () => {
  const unnamed = as([gid], ['env', '-u', 'ISLET_DATA_DIR', process.execPath, ISLET, 'ls'])
  await assert.rejects(unnamed, (error: { stderr: string }) => {
    assert.match(error.stderr, /key or token is missing/)
    assert.match(
      error.stderr,
      /ISLET_DATA_DIR.*\/var\/lib\/islet, whose key is sent by default only to http:\/\/127\.0\.0\.1:7400/,
    )
    return true
  })
})

test('another user is refused, and told to become a member', async () => {
  await assert.rejects(islet([], 'ls'), (error: { stderr: string }) => {
    assert.match(error.stderr, /key or token is missing/)
    assert.match(error.stderr, /\/var\/lib\/islet\/key.*usermod -aG islet somebody.*ISLET_API_KEY/)
    return true
  })
})

test('a member reaches nothing of the data directory but the key, least of all setuid files of sandboxes', async () => {
  const { sandboxes } = server.islet()
  const sandbox = await sandboxes.connect((await sandboxes.list()).sandboxes[0]!.id)
  await sandbox.runCommand('cp /bin/sh /usr/local/bin/rootsh && chmod 4755 /usr/local/bin/rootsh', {
    user: 'root',
  })
  const [setuid] = globSync(join(server.dataDir, 'pool/layers/**/rootsh'))
  assert.equal(statSync(setuid!).mode & 0o7777, 0o4755)

  assert.equal(lstatSync(server.dataDir).mode & 0o777, 0o710)
  const names = readdirSync(server.dataDir)
  for (const name of ['config.json', 'images', 'islet.db', 'output', 'pool', 'pool.img', 'token-key'])
    assert.ok(names.includes(name), name)
  for (const name of names.filter((name) => name !== 'key' && name !== 'islet.sock'))
    assert.equal(lstatSync(join(server.dataDir, name)).mode & 0o077, 0, name)

  const paths = names.map((name) => join(server.dataDir, name))
  const program = `
    const fs = require('node:fs')
    const tries = {
      list: (path) => fs.readdirSync(path),
      read: (path) => fs.closeSync(fs.openSync(path, 'r')),
      write: (path) => fs.closeSync(fs.openSync(path, 'a')),
      inside: (path) => fs.lstatSync(path + '/.'),
      execute: (path) => require('node:child_process').execFileSync(path, ['-c', 'id']),
    }
    const done = []
    for (const path of ${JSON.stringify([server.dataDir, ...paths, setuid])}) {
      for (const [verb, attempt] of Object.entries(tries)) {
        try { attempt(path); done.push(verb + ' ' + path) } catch {}
      }
    }
    console.log(JSON.stringify(done))`
  const { stdout } = await as([gid], [process.execPath, '--eval', program])
  assert.deepEqual(JSON.parse(stdout), [`inside ${server.dataDir}`, `read ${join(server.dataDir, 'key')}`])
})

test('when the group is gone, the next start closes the key', async () => {
  execFileSync('groupdel', [GROUP])
  await server.kill()
  await server.start()
  assert.equal(lstatSync(join(server.dataDir, 'key')).mode & 0o777, 0o600)
  assert.equal(lstatSync(server.dataDir).mode & 0o777, 0o700)
  assert.match(server.output, /the group of ISLET_GROUP does not exist/)
  await assert.rejects(islet([gid], 'ls'), { code: 1 })
})

test('uninstall --purge asks, refuses while the server runs, and then leaves nothing on the machine', async () => {
  const { dataDir } = server
  const slot = slotOf(dataDir)
  const words = ['service', 'uninstall', '--purge', '--data-dir', dataDir]
  const purge = (...flags: string[]) =>
    run(process.execPath, [ISLET, ...words, ...flags], { env: cleanEnv() })
  await assert.rejects(purge(), { code: 2, stderr: /--yes removes all sandboxes and everything in / })
  await assert.rejects(purge('--yes'), {
    code: 1,
    stderr: new RegExp(`pid ${server.pid}.*\n.*Stop that server`),
  })
  await server.stop()
  const before = tracesOf(dataDir, slot)
  assert.ok(
    before.processes.length > 0 && before.mounts.length > 0 && before.links.length > 0,
    'the sandbox goes on',
  )

  writeFileSync(join(dataDir, 'notes.txt'), 'of somebody else')
  assert.deepEqual(JSON.parse((await purge('--yes', '--json')).stdout), { dataDir, left: ['notes.txt'] })
  assert.deepEqual(readdirSync(dataDir), ['notes.txt'])
  const nothing = { mounts: [], processes: [], cgroups: [], links: [], tables: [], loops: [], slots: [] }
  assert.deepEqual(tracesOf(dataDir, slot), nothing)
  await assert.rejects(purge('--yes'), { code: 1, stderr: /not the data directory of a server/ })
  rmSync(dataDir, { recursive: true })
})

/** The command as another user, who finds the server's data directory where that of root's server is. */
function islet(groups: number[], ...words: string[]): Promise<{ stdout: string; stderr: string }> {
  return as(groups, [process.execPath, ISLET, ...words])
}

function as(groups: number[], argv: string[]): Promise<{ stdout: string; stderr: string }> {
  const env = { ISLET_URL: server.url, ISLET_DATA_DIR: '/var/lib/islet' }
  return asUser(argv, { uid: STRANGER, groups, dataDir: server.dataDir, env })
}
