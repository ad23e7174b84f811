// A server and its clients on one machine: they meet at a socket in the data directory, and no other program gets the key.
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { asUser } from '../support/as-user.ts'
import { needs } from '../support/programs.ts'
import { cleanEnv, ISLET, root, TestServer } from '../support/server.ts'

needs('curl')

const run = promisify(execFile)
const GROUP = `islet-sock-${process.pid}`
const SOMEBODY = 47_114 // the uid of nobody in particular
const STRANGER = 47_115
const SDK = join(root, 'packages/sdk/src/index.ts')
let server: TestServer
let gid: number

before(async () => {
  execFileSync('groupadd', ['--system', GROUP])
  gid = Number(execFileSync('getent', ['group', GROUP], { encoding: 'utf8' }).split(':')[2])
  server = await TestServer.start({ env: { ISLET_GROUP: GROUP, ISLET_ENGINE: 'process' } })
})

after(async () => {
  execFileSync('groupdel', [GROUP])
  await server[Symbol.asyncDispose]()
})

test('a client that is told no address uses the socket for calls, streams and WebSockets', async () => {
  const program = `
    import { Islet } from ${JSON.stringify(SDK)}
    const islet = new Islet()
    const sandbox = await islet.sandboxes.create()
    const told = [islet.url, (await sandbox.exec.run('echo $((6*7))')).stdout]
    const half = new Uint8Array(5_000_000).fill(7)
    await sandbox.files.write('large', new ReadableStream({
      start(controller) { controller.enqueue(half); controller.enqueue(half); controller.close() },
    }))
    told.push((await sandbox.files.readBytes('large')).length)
    const session = await sandbox.exec.start('read line; echo "heard $line"', {
      onStdout: (data) => void told.push(new TextDecoder().decode(data)),
    })
    await session.sendStdin('you\\n')
    told.push(await session.done, await sandbox.files.downloadUrl('large'))
    told.push((await Promise.all(Array.from({ length: 600 }, () => islet.health()))).length)
    await sandbox.kill()
    console.log(JSON.stringify(told))`
  const [url, six, bytes, heard, exitCode, signed, many] = JSON.parse(await node(program))
  assert.deepEqual([url, six, bytes], [`unix:${join(server.dataDir, 'islet.sock')}`, '42\n', 10_000_000])
  assert.deepEqual([heard, exitCode, many], ['heard you\n', 0, 600])
  // A signed URL names the server's address: its recipient does not have the socket.
  assert.ok(signed.startsWith(`${server.url}/v1/signed-files?`), signed)
  assert.equal((await fetch(signed)).status, 409, 'the sandbox is gone')
})

test('the key is wanted at the socket too', async () => {
  const path = join(server.dataDir, 'islet.sock')
  const { stdout } = await run('curl', ['-s', '--unix-socket', path, 'http://localhost/v1/sandboxes'])
  assert.equal(JSON.parse(stdout).error.code, 'unauthorized')
})

test('members of the group use the socket, and others cannot', async () => {
  const { mode, gid: owner } = lstatSync(join(server.dataDir, 'islet.sock'))
  assert.deepEqual([mode & 0o777, owner], [0o660, gid])
  // As they find root's server, with nothing set at all.
  const { stdout } = await as([gid], [process.execPath, ISLET, 'create'])
  assert.equal((await islet('ls')).stdout.includes(stdout.trim()), true)
  const connect = `
    require('node:net').connect('/var/lib/islet/islet.sock')
      .on('connect', () => { console.log('connected'); process.exit() })
      .on('error', ({ code }) => console.log(code))`
  assert.equal((await as([gid], [process.execPath, '--eval', connect])).stdout, 'connected\n')
  assert.equal((await as([], [process.execPath, '--eval', connect])).stdout, 'EACCES\n')
})

test('the socket of a killed server is replaced by the next one, and a server that stops removes its own', async () => {
  const path = join(server.dataDir, 'islet.sock')
  await server.kill()
  assert.ok(existsSync(path))
  await assert.rejects(islet('ls'), { stderr: /No answer from unix:.*islet\.sock \(ECONNREFUSED\)/ })
  await server.start()
  await islet('ls')
  await server.stop()
  assert.ok(!existsSync(path))
  await server.start()
})

test('a path that is too long for a socket is none for a server', async () => {
  const base = mkdtempSync(join(tmpdir(), 'islet-long-'))
  try {
    const dataDir = join(base, 'd'.repeat(100), 'ü'.repeat(50), 'a b:c')
    mkdirSync(dataDir, { recursive: true })
    await using long = await TestServer.start({ dataDir, env: { ISLET_ENGINE: 'process', ISLET_GROUP: '' } })
    assert.equal(lstatSync(join(dataDir, 'islet.sock')).mode & 0o777, 0o600)
    const program = `
      import { Sandbox } from ${JSON.stringify(SDK)}
      const sandbox = await Sandbox.create()
      const session = await sandbox.exec.start('exit 7')
      console.log(await session.done)
      await sandbox.kill()`
    assert.equal(await node(program, { ISLET_DATA_DIR: long.dataDir }), '7\n')
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
})

test("another user's program at the address gets no key from the key file, neither root's nor a member's", async () => {
  await using stranger = await Listener.start(STRANGER)
  const refused = { stderr: /belongs to uid 47115.*the key in .*\/key is not sent there/s }
  const env = { ISLET_URL: stranger.url }
  for (const name of ['127.0.0.1', 'localhost'])
    await assert.rejects(islet('ls', { ISLET_URL: stranger.url.replace('127.0.0.1', name) }), refused)
  const named = { ...env, ISLET_DATA_DIR: '/var/lib/islet' }
  await assert.rejects(as([gid], [process.execPath, ISLET, 'ls'], named), refused)
  assert.ok(!stranger.heard.includes(server.key), stranger.heard)
  // A key that the user gives is sent to the URL that the user gives.
  await islet('ls', { ...env, ISLET_API_KEY: server.key }).catch(() => {})
  assert.ok(stranger.heard.includes(server.key))
})

test('the program of root, and of the owner of the key, at the address gets it', async () => {
  await islet('ls', { ISLET_URL: server.url })
  await as([gid], [process.execPath, ISLET, 'ls'], {
    ISLET_URL: server.url,
    ISLET_DATA_DIR: '/var/lib/islet',
  })
})

test("without a server another user's program at the default address gets no key", async () => {
  await server.stop()
  const directory = mkdtempSync(join(tmpdir(), 'islet-heard-'))
  try {
    // Its own network namespace, because the default port of this machine may be in use.
    const script = `ip link set lo up
      "$NODE" --eval "$LISTENER" > heard &
      until test -s heard; do sleep 0.05; done
      "$NODE" "$ISLET" ls
      echo "exit $?"
      kill $!`
    const env = {
      NODE: process.execPath,
      LISTENER: listener(STRANGER, 7400),
      ISLET,
      ISLET_DATA_DIR: server.dataDir,
    }
    const { stdout, stderr } = await run('unshare', ['--net', 'sh', '-c', script], {
      cwd: directory,
      env: { ...cleanEnv(), ...env },
    })
    assert.match(stderr, /127\.0\.0\.1:7400 belongs to uid 47115/)
    assert.equal(stdout, 'exit 1\n')
    assert.equal(readFileSync(join(directory, 'heard'), 'utf8'), '7400\n')
  } finally {
    rmSync(directory, { recursive: true })
    await server.start()
  }
})

/** A program of another user that listens on a port of the loopback. */
class Listener {
  heard = ''
  readonly #child: ChildProcess

  static async start(uid: number): Promise<Listener> {
    const listening = new Listener(uid)
    while (!listening.heard.includes('\n')) await once(listening.#child.stdout!, 'data')
    return listening
  }

  private constructor(uid: number) {
    this.#child = spawn(process.execPath, ['--eval', listener(uid, 0)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#child.stdout!.on('data', (chunk) => {
      this.heard += chunk
    })
  }

  get url(): string {
    return `http://127.0.0.1:${Number.parseInt(this.heard, 10)}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill()
    await once(this.#child, 'exit')
  }
}

/** Prints the port, and then all it hears. */
function listener(uid: number, port: number): string {
  return `process.setgid(${uid}); process.setuid(${uid})
    const server = require('node:net').createServer((socket) => {
      socket.on('error', () => {}).on('data', (data) => { process.stdout.write(data); socket.end('HTTP/1.1 500 No\\r\\n\\r\\n') })
    }).listen(${port}, '127.0.0.1', () => console.log(server.address().port))`
}

function islet(command: string, env: Record<string, string> = {}): Promise<{ stdout: string }> {
  return run(process.execPath, [ISLET, command], {
    env: { ...cleanEnv(), ISLET_DATA_DIR: server.dataDir, ...env },
  })
}

async function node(program: string, env: Record<string, string> = {}): Promise<string> {
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], {
    env: { ...cleanEnv(), ISLET_DATA_DIR: server.dataDir, ...env },
  })
  return stdout
}

function as(
  groups: number[],
  argv: string[],
  env: Record<string, string> = {},
): Promise<{ stdout: string; stderr: string }> {
  return asUser(argv, { uid: SOMEBODY, groups, dataDir: server.dataDir, env })
}
