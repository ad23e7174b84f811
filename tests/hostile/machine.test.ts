// Resources that the kernel counts for the whole machine, or outside the memory limit of a sandbox: one takes all that it can get, and the other
// still gets its own.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox } from 'islet'
import { Internet } from '../support/internet.ts'
import { needs } from '../support/programs.ts'
import { eachIsolation, type Target } from './attack.ts'

needs('nft')

const MIB = 1024 ** 2
/** Memory that sockets of a sandbox may hold beside its limit on cgroup v1, and as much again for data in flight. */
const MAX_SOCKET_BYTES = 128 * MIB
const MAX_PTYS = 256
const MAX_CONNECTIONS = 4096
/** Only some kernels have it. */
const TRACKED = '/proc/net/nf_conntrack'
/** As many percent of the memory as are half a GiB. */
const CEILING = Math.ceil((512 * MIB * 100) / totalmem())

/** Each takes until it is refused, says how many it got and by which error it ended, and waits to be killed. */
const TAKE = `
import ctypes, errno, fcntl, os, resource, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = []

def pty():
    held.append(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))

def aio():
    context = ctypes.c_ulong(0)
    if libc.syscall(206 if os.uname().machine == 'x86_64' else 0, 1000, ctypes.byref(context)) < 0:
        raise OSError(ctypes.get_errno(), 'io_setup')

def netlink():
    held.append(socket.socket(16, socket.SOCK_RAW, 2))

def inotify():
    if libc.inotify_init1(0) < 0: raise OSError(ctypes.get_errno(), 'inotify_init1')

def connect():
    held.append(socket.create_connection((sys.argv[3], 80), 5))

def take(one, many):
    for count in range(many + 1):
        try: one()
        except OSError as error: return count, errno.errorcode.get(error.errno, str(error))
    return count, ''

print(*take(globals()[sys.argv[1]], int(sys.argv[2])), flush=True)
time.sleep(600)
`

/** How many bytes can wait in sockets of the loopback that nobody reads. */
const FILL = `
import resource, socket, sys, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
kind, limit = sys.argv[1], int(sys.argv[2])
held, total, barren = [], 0, 0

def pair():
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    listener.bind(('127.0.0.1', 0))
    if kind == 'tcp': listener.listen()
    sender = socket.socket(listener.family, listener.type)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    sender.settimeout(0.2)
    sender.connect(listener.getsockname())
    return sender, listener.accept()[0] if kind == 'tcp' else listener

def arrived(receiver):
    receiver.setblocking(False)
    count = 0
    try:
        while True: count += len(receiver.recv(1 << 16))
    except BlockingIOError: return count

while total < limit and barren < 8:
    sent = 0
    try:
        sender, receiver = pair()
        held += [sender, receiver]
        for _ in range(64): sent += sender.send(bytes(60000))
    except OSError: pass
    if kind == 'tcp': total += sent
    barren = 0 if sent > 60000 else barren + 1
    if kind == 'udp' and len(held) >= 200: break
if kind == 'udp': total = sum(arrived(receiver) for receiver in held[1::2])
print(total, flush=True)
`

await eachIsolation({ area: 'machine', env: { ISLET_WARM_MAX: '0' } }, (target) => {
  const { isolation } = target
  const isLinux = isolation === 'namespace'

  it('terminals', async () => {
    await using attacker = await target.suite.create()
    await using other = await target.suite.create()
    await target.attack('terminals without end', 1, async () => {
      const [count, error] = await take(attacker, 'pty', 2 * MAX_PTYS)
      // gVisor's are its own, and memory of its own.
      if (isLinux) {
        assert.ok(count <= MAX_PTYS, String(count))
        assert.equal(error, 'ENOSPC')
        await assert.rejects(attacker.terminal.create({ pty: true }), {
          code: 'limit_exceeded',
          message: /no terminal left/,
        })
      }
      await using terminal = await other.terminal.create({ pty: true })
      assert.ok(terminal.id)
    })
  })

  it('AIO contexts', async () => {
    await using attacker = await target.suite.create()
    await target.attack('AIO contexts without end', 1, async () => {
      const taken = await take(attacker, 'aio', 10)
      // gVisor's are its own.
      if (isLinux) assert.deepEqual(taken, [0, 'ENOSYS'])
    })
  })

  it('inotify instances', async () => {
    await using attacker = await target.suite.create()
    await using other = await target.suite.create()
    await target.attack('inotify instances without end', 1, async () => {
      await take(attacker, 'inotify', 1000)
      const [count] = await take(other, 'inotify', 10)
      assert.equal(count, 10)
    })
  })

  it('memory of sockets', async () => {
    await using attacker = await target.suite.create({ resources: { memory: '512Mi' } })
    await target.attack('memory in sockets that nobody reads', 2, async () => {
      for (const kind of ['tcp', 'udp']) {
        const command = ['/usr/bin/python3', '-c', FILL, kind, String(2 * MAX_SOCKET_BYTES)]
        const filled = attacker.exec.run(command)
        // gVisor's buffers are memory of the sandbox.
        if (isLinux) {
          const { stdout, stderr } = await filled
          assert.ok(Number(stdout) > 0 && Number(stdout) <= MAX_SOCKET_BYTES, `${kind}: ${stdout} ${stderr}`)
        } else await filled.catch(() => {})
      }
    })
  })

  it('messages from program to program by netlink', async () => {
    await using attacker = await target.suite.create()
    await target.attack('netlink sockets of programs', 1, async () => {
      const [count, error] = await take(attacker, 'netlink', 10)
      assert.equal(count, 0)
      assert.match(error, /^(EPERM|EPROTONOSUPPORT|EACCES)$/)
    })
  })

  it('CPU time', async () => {
    await using attacker = await target.suite.create()
    await using second = await target.suite.create()
    const loops = `for i in $(seq ${2 * availableParallelism()}); do while :; do :; done & done; wait`
    await target.attack('all CPU time, from two sandboxes', 2, async () => {
      for (const box of [attacker, second]) await box.exec.spawn(loops)
      await sleep(8000)
    })
  })

  connections(target)
})

await eachIsolation({ area: 'ceiling', env: { ISLET_MEMORY_CEILING: String(CEILING) } }, (target) => {
  it('memory of all sandboxes together', async () => {
    await using attacker = await target.suite.create()
    await target.attack('more memory than all sandboxes together may have', 1, async () => {
      const hog = attacker.exec.run(['/usr/bin/python3', '-c', `x = b'x' * ${2 * 512 * MIB}`])
      // If that ends the whole sandbox, no process is left to answer.
      const result = await hog.catch(() => undefined)
      if (result) assert.equal(result.signal, 'SIGKILL')
    })
  })
})

/** Entries of the machine's connection tracking. */
function connections(target: Target): void {
  let internet: Internet
  before(async () => {
    internet = new Internet()
    await internet.start()
  })
  after(() => internet[Symbol.asyncDispose]())

  it('connections', async () => {
    const network = { enabled: true }
    const attacker = await target.suite.create({ network })
    await using other = await target.suite.create({ network })
    const address = await addressOf(attacker, internet.web)
    await target.attack('connections without end', MAX_CONNECTIONS, async () => {
      const [count, error] = await take(attacker, 'connect', MAX_CONNECTIONS + 50, internet.web)
      assert.ok(count > MAX_CONNECTIONS / 2 && count <= MAX_CONNECTIONS, `${count} ${error}`)
      assert.deepEqual(await take(other, 'connect', 50, internet.web), [50, ''])
    })
    const isSeen = existsSync(TRACKED)
    if (isSeen) assert.ok(trackedOf(address) > MAX_CONNECTIONS / 2)
    await attacker.kill()
    // The next sandbox with this address begins with none.
    if (isSeen) assert.equal(trackedOf(address), 0)
  })
}

function trackedOf(address: string): number {
  return readFileSync(TRACKED, 'utf8').split(`src=${address} `).length - 1
}

async function addressOf(sandbox: Sandbox, peer: string): Promise<string> {
  const program = `import socket; print(socket.create_connection(('${peer}', 80)).getsockname()[0])`
  return (await sandbox.exec.run(['/usr/bin/python3', '-c', program])).stdout.trim()
}

/** The amount that it got, and the name of the error that ended it. It keeps everything until its sandbox is gone. */
async function take(
  sandbox: Sandbox,
  what: string,
  many: number,
  ...more: string[]
): Promise<[number, string]> {
  const command = ['/usr/bin/python3', '-c', TAKE, what, String(many), ...more]
  const { promise, resolve, reject } = Promise.withResolvers<[number, string]>()
  const onStdout = (data: Uint8Array) => {
    const [count = '', error = ''] = Buffer.from(data).toString().trim().split(' ')
    resolve([Number(count), error])
  }
  await sandbox.exec.start(command, {
    onStdout,
    onExit: (code) => reject(new Error(`${what}: exit ${code}`)),
  })
  return promise
}
