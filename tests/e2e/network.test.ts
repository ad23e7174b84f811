// The way out, against an internet of our own: no packet of these tests leaves the machine.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { Sandbox } from 'islet'
import { islet } from '../../packages/cli/test/islet.ts'
import { baseImageForTests } from '../../packages/server/src/image/testing.ts'
import { Internet, ip } from '../support/internet.ts'
import { slotOf } from '../support/leftovers.ts'
import { firstProcessOf } from '../support/life.ts'
import { needs } from '../support/programs.ts'
import { writeAptRepository, writeNpmRegistry } from '../support/registries.ts'
import { failsWith, refused, say } from '../support/shell.ts'
import { startSuite } from '../support/suite.ts'

needs('curl', 'git', 'nft', 'sysctl')

const { imagesDir } = await baseImageForTests()
/** Makes the repository of these tests the only source of packages. */
const OUR_APT = `sudo rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* &&
  echo "deb [trusted=yes] http://apt.islet.test/apt ./" | sudo tee /etc/apt/sources.list && sudo apt-get update 2>&1`
const internet = new Internet()
after(() => internet[Symbol.asyncDispose]())
await internet.start()
const { privates } = internet

const suite = await startSuite({
  env: {
    ISLET_IMAGE_DIR: imagesDir,
    ISLET_DNS: internet.dns,
    ISLET_NETWORK_ALLOW: `${privates.office}/32`,
  },
})
const [online, other, offline] = await Promise.all([
  suite.create({ network: { enabled: true } }),
  suite.create({ network: { enabled: true } }),
  suite.create(),
])

test('without a network there is the loopback only', async () => {
  assert.equal(await say(offline, 'ls /sys/class/net'), 'lo')
  await cannotFetch(offline, internet.web)
  await refused(offline, 'getent hosts web.islet.test')
  await offline.exec.spawn('python3 -m http.server 80 --bind 127.0.0.1 --directory /etc')
  await offline.exec.spawn('python3 -m http.server 81 --bind ::1 --directory /etc')
  await say(offline, 'curl -sf --retry 20 --retry-delay 1 --retry-connrefused http://127.0.0.1/hostname')
  await say(offline, 'curl -sf --retry 20 --retry-delay 1 --retry-connrefused http://[::1]:81/hostname')
})

/** With a list and a state of its own; apt itself calls it a warning. */
const APT_UPDATE = [
  'mkdir -p /tmp/apt/lists/partial && echo "deb http://web.islet.test/apt ./" > /tmp/apt/sources.list',
  'apt-get -o Dir::Etc::SourceList=/tmp/apt/sources.list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=/tmp/apt/lists \\',
  '  -o Acquire::Retries=0 -o APT::Update::Error-Mode=any update',
].join('\n')

test('a command that fails for want of a network gets a hint, by SDK and command line, and no other does', async () => {
  const hint = 'This sandbox has no network; create it with network or run islet network on'
  const tries = {
    curl: 'curl -sS -m 5 http://web.islet.test/',
    git: 'git ls-remote http://web.islet.test/a.git',
    python3: 'python3 -c \'import urllib.request as r; r.urlopen("http://web.islet.test/")\'',
    node: 'node -e \'fetch("http://web.islet.test/").catch((e) => { console.error(e); process.exit(1) })\'',
    wget: 'wget -T 5 -t 1 http://web.islet.test/',
    npm: 'npm view tiny-pkg --registry http://web.islet.test/npm --fetch-retries 0',
    'apt-get': APT_UPDATE,
  }
  for (const [tool, command] of Object.entries(tries)) {
    if ((await offline.exec.run(`command -v ${tool}`)).exitCode !== 0) continue
    const failed = await refused(offline, command)
    assert.equal(failed.hint, hint, `${tool}: ${failed.stdout}${failed.stderr}`)
  }
  const unreachable = await refused(
    offline,
    'python3 -c \'import socket; socket.create_connection(("192.0.2.1", 1))\'',
  )
  assert.equal(unreachable.hint, hint)
  const code = await offline.runCode('import urllib.request as r\nr.urlopen("http://web.islet.test/")')
  assert.equal(code.hint, hint)
  assert.equal((await offline.exec.run(`${tries.curl}; true`)).hint, undefined, 'it succeeded')
  assert.equal((await offline.exec.run('ls /nowhere')).hint, undefined, 'it failed for another reason')
  const named = await refused(online, 'curl -sS -m 20 http://nosuch.example/')
  assert.equal(named.hint, undefined, 'it has a network')
  const to = { url: suite.server.url, env: { ISLET_API_KEY: suite.server.key } }
  const said = await islet(['exec', offline.id, '--', 'curl', '-sS', 'http://web.islet.test/'], to)
  assert.equal(said.exitCode, 6)
  assert.match(said.stderr, /Could not resolve host[^\n]*\nhint: This sandbox has no network/)
  const coded = await islet(['code', offline.id, '-l', 'sh'], { ...to, stdin: tries.curl })
  assert.match(coded.stderr, /\nhint: This sandbox has no network/)
})

test('with one, it reaches the internet under an address of the machine', async () => {
  assert.equal(await fetchFrom(online, internet.web), `hello ${internet.hostAddress}`)
})

test('names are looked up with the configured server', async () => {
  assert.match(await say(online, 'getent ahostsv4 web.islet.test'), new RegExp(`^${internet.web} `))
  assert.equal(await fetchFrom(online, 'web.islet.test'), `hello ${internet.hostAddress}`)
  await refused(online, 'getent hosts nosuch.example')
  const [, nameserver] = /nameserver (\S+)/.exec(await say(online, 'cat /etc/resolv.conf'))!
  assert.notEqual(nameserver, internet.dns, 'the nameserver is our own forwarder')
})

test('private, link-local and shared ranges are denied, except what is allowed', async () => {
  for (const [name, address] of Object.entries(privates)) {
    const answer = await fetch(`http://${address}/hello`, { signal: AbortSignal.timeout(5000) })
    assert.match(await answer.text(), /^hello/, 'the machine itself reaches it')
    if (name !== 'office') await cannotFetch(online, address)
  }
  await cannotFetch(online, '169.254.169.254')
  assert.equal(await fetchFrom(online, privates.office), `hello ${internet.hostAddress}`)
})

test('no address of the machine answers, nor the port of the server', async () => {
  const listener = createServer((_, response) => response.end('hello from the machine')).listen(0, '0.0.0.0')
  await once(listener, 'listening')
  try {
    const { port } = listener.address() as AddressInfo
    const gateway = await say(online, "ip route | sed -n 's/default via \\([0-9.]*\\).*/\\1/p'")
    assert.match(gateway, /^10\./)
    const own = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
    const addresses = own.filter(({ family }) => family === 'IPv4').map(({ address }) => address)
    const some = addresses.filter((address) => !address.startsWith('10.') || address === gateway).slice(0, 8)
    assert.ok(some.includes(internet.hostAddress))
    for (const address of new Set([gateway, ...some])) {
      await cannotFetch(online, `${address}:${port}`)
      await cannotFetch(online, `${address}:${new URL(suite.server.url).port}`)
    }
  } finally {
    listener.close()
  }
})

test('sandboxes do not reach each other', async () => {
  await other.exec.spawn('python3 -m http.server 8000 --directory /etc')
  await say(other, 'curl -sf --retry 20 --retry-delay 1 --retry-connrefused http://127.0.0.1:8000/hostname')
  const address = await say(other, "hostname -I | tr -d ' '")
  assert.match(address, /^10\.\d+\.\d+\.\d+$/)
  assert.equal(await say(other, `curl -sf http://${address}:8000/hostname`), other.id)
  await cannotFetch(online, `${address}:8000`)
  await cannotFetch(offline, `${address}:8000`)
})

test('hardware addresses follow from IP addresses, so that none is remembered wrongly', async () => {
  const bridge = `islet${slotOf(suite.server.dataDir)}`
  const port = `${bridge}low`
  // A bridge without an address of its own takes the lowest of its ports.
  ip('link', 'add', port, 'address', '02:00:00:00:00:00', 'type', 'veth', 'peer', 'name', `${port}er`)
  try {
    ip('link', 'set', port, 'master', bridge, 'up')
    const gateway = await say(online, "ip route | sed -n 's/default via \\([0-9.]*\\).*/\\1/p'")
    assert.equal(readFileSync(`/sys/class/net/${bridge}/address`, 'utf8').trim(), hardwareAddress(gateway))
    assert.equal(await fetchFrom(online, 'web.islet.test'), `hello ${internet.hostAddress}`)
  } finally {
    ip('link', 'delete', port)
  }
  const address = await say(other, "hostname -I | tr -d ' '")
  assert.equal(await say(other, 'cat /sys/class/net/eth0/address'), hardwareAddress(address))
})

test('root inside cannot open the way', async () => {
  const attempts = [
    'nft flush ruleset',
    'iptables -F',
    'ip address add 10.0.0.77/8 dev eth0',
    'ip link set eth0 address 02:00:00:00:00:01',
    'ip route add 169.254.0.0/16 dev eth0',
    'sysctl -w net.ipv4.ip_forward=1',
  ]
  for (const attempt of attempts) await refused(online, attempt, { user: 'root' })
})

test('the network is switched while a sandbox runs, and connections end with it', async () => {
  await using sandbox = await suite.create()
  await cannotFetch(sandbox, 'web.islet.test')
  const changed = await sandbox.update({ network: { enabled: true } })
  assert.equal(changed.network.enabled, true)
  assert.equal(await fetchFrom(sandbox, 'web.islet.test'), `hello ${internet.hostAddress}`)
  const address = await say(sandbox, "hostname -I | tr -d ' '")
  assert.match(await say(sandbox, 'getent ahostsv4 $(hostname)'), new RegExp(`^${address} `))
  await cannotFetch(sandbox, privates.ten)
  const hold = `import socket; s = socket.create_connection(('${internet.web}', 80)); print('held', flush=True); s.recv(1)`
  const held = Promise.withResolvers<void>()
  const holder = await sandbox.exec.start(['python3', '-c', hold], { onStdout: () => held.resolve() })
  await held.promise
  const to = { url: suite.server.url, env: { ISLET_API_KEY: suite.server.key } }
  assert.equal((await islet(['network', 'off', sandbox.id], to)).stdout, `${sandbox.id}\n`)
  assert.equal(await holder.done, 1, 'the connection has ended')
  assert.equal(await say(sandbox, 'ls /sys/class/net; cat /etc/resolv.conf'), 'lo')
  assert.equal(await say(sandbox, 'grep $(hostname) /etc/hosts'), `127.0.1.1 ${sandbox.id}`)
  await cannotFetch(sandbox, internet.web)

  // A file or link that a program inside puts in the way is replaced inside, and leads nowhere on the machine.
  await say(sandbox, 'ln -sf /etc/machine-id /etc/resolv.conf; echo "192.0.2.7 mine" >> /etc/hosts', {
    user: 'root',
  })
  assert.equal((await islet(['update', sandbox.id, '--network'], to)).exitCode, 0)
  assert.equal(await fetchFrom(sandbox, 'web.islet.test'), `hello ${internet.hostAddress}`)
  assert.match(await say(sandbox, 'cat /etc/hosts'), /^192\.0\.2\.7 mine$/m)
  assert.equal((await say(sandbox, 'cat /etc/machine-id')).length, 32)
  const { events } = await sandbox.events.list({ types: ['network.changed'], direction: 'asc' })
  assert.deepEqual(
    events.map(({ data }) => data.enabled),
    [true, false, true],
  )

  const turns = Array.from({ length: 9 }, (_, index) =>
    sandbox.update({ network: { enabled: index % 2 === 1 } }),
  )
  await Promise.all(turns)
  assert.equal((await sandbox.getInfo()).network.enabled, false)
  await cannotFetch(sandbox, internet.web)

  // Files that cannot be written keep no network, and do not get one.
  await sandbox.update({ network: { enabled: true } })
  await say(sandbox, 'rm /etc/resolv.conf && mkdir -p /etc/resolv.conf/full', { user: 'root' })
  await sandbox.update({ network: { enabled: false } })
  assert.equal(await say(sandbox, 'ls /sys/class/net'), 'lo')
  await assert.rejects(sandbox.update({ network: { enabled: true } }))
  assert.equal((await sandbox.getInfo()).network.enabled, false)
  assert.equal(await say(sandbox, 'ls /sys/class/net'), 'lo')
})

test('the token of a sandbox cannot turn its network on', async () => {
  const { token } = await offline.getToken()
  const inside = await Sandbox.connect(offline.id, { url: suite.server.url, token })
  await failsWith(inside.update({ network: { enabled: true } }), 'forbidden')
  await failsWith(inside.fork({ network: { enabled: true } }), 'forbidden')
  assert.equal((await offline.getInfo()).network.enabled, false)
})

test('the network of a suspended sandbox is switched, and forks and restores keep the setting', async () => {
  await using sandbox = await suite.create()
  const before = await sandbox.createCheckpoint('before')
  await sandbox.pause()
  await sandbox.update({ network: { enabled: true } })
  assert.equal(await fetchFrom(sandbox, 'web.islet.test'), `hello ${internet.hostAddress}`)
  await using copy = await sandbox.fork()
  assert.equal(await fetchFrom(copy, 'web.islet.test'), `hello ${internet.hostAddress}`)
  await sandbox.hibernate()
  await sandbox.update({ network: { enabled: false } })
  await cannotFetch(sandbox, 'web.islet.test')
  assert.equal(await say(sandbox, 'cat /etc/resolv.conf'), '')
  await sandbox.update({ network: { enabled: true } })
  await sandbox.restoreCheckpoint(before.id)
  assert.equal(await fetchFrom(sandbox, 'web.islet.test'), `hello ${internet.hostAddress}`)
})

test('a guest that does not answer keeps neither its network nor its sandbox', async () => {
  const sandbox = await suite.create({ network: { enabled: true } })
  const pid = await firstProcessOf(sandbox)
  const links = () => readdirSync(`/proc/${pid}/root/sys/class/net`)
  process.kill(pid, 'SIGSTOP')
  const signal = AbortSignal.timeout(60_000)
  const { network } = await sandbox.update({ network: { enabled: false } }, { signal })
  assert.equal(network.enabled, false)
  assert.deepEqual(links(), ['lo'])
  await sandbox.kill({ signal })
  assert.equal((await sandbox.getInfo()).status, 'stopped')
})

test('the next server completes a switch that a crash interrupted', async () => {
  const [on, off, still] = await Promise.all([
    suite.create(),
    suite.create({ network: { enabled: true } }),
    suite.create({ network: { enabled: true } }),
  ])
  await still.pause()
  await suite.server.kill()
  // As a crash leaves it that comes right after the record was written.
  const db = new DatabaseSync(join(suite.server.dataDir, 'islet.db'))
  const cut = db.prepare(
    "UPDATE sandboxes SET network = json_set(network, '$.enabled', json(?)), network_due = 1 WHERE id = ?",
  )
  cut.run('true', on.id)
  for (const { id } of [off, still]) cut.run('false', id)
  db.close()
  await suite.server.start()
  assert.equal(await fetchFrom(on, 'web.islet.test'), `hello ${internet.hostAddress}`)
  await cannotFetch(off, internet.web)
  assert.equal(await say(off, 'ls /sys/class/net; cat /etc/resolv.conf'), 'lo')
  await cannotFetch(still, internet.web)
  assert.equal(await say(still, 'ls /sys/class/net; cat /etc/resolv.conf'), 'lo')
  await Promise.all([on, off, still].map((sandbox) => sandbox.kill()))
})

test('the network of a sandbox is there after the server was killed and started again', async () => {
  await suite.server.kill()
  await suite.server.start()
  assert.equal(await fetchFrom(online, 'web.islet.test'), `hello ${internet.hostAddress}`)
  await cannotFetch(online, privates.ten)
})

test('on the Debian base apt-get and npm install packages that run', async () => {
  const [apt, npm] = ['apt', 'npm'].map((name) => join(internet.directory, name))
  mkdirSync(apt!)
  mkdirSync(npm!)
  writeAptRepository(apt!)
  writeNpmRegistry(npm!, 'http://npm.islet.test/npm')
  await using base = await suite.create({ runtime: 'base', network: { enabled: true } })
  await say(base, `${OUR_APT} && sudo apt-get install -y hello-islet 2>&1`)
  assert.equal(await say(base, 'hello-islet'), 'hello from apt')
  assert.equal(await say(base, 'stat -c %U:%G /var/lib/hello-islet'), 'games:games')
  await say(base, 'mkdir -p /workspace/app && cd /workspace/app && npm init -y')
  const install = 'npm install --no-audit --no-fund --registry http://npm.islet.test/npm/ tiny-pkg'
  await say(base, install, { cwd: '/workspace/app' })
  assert.equal(await say(base, 'npx --no-install tiny', { cwd: '/workspace/app' }), 'hello from npm')
  await say(base, `${install} --global && tiny | grep -q 'hello from npm'`)
  await say(base, 'npm rm -g tiny-pkg')
  await refused(base, 'tiny')
  await say(base, `sudo ${install} --global && tiny | grep -q 'hello from npm'`)
  await say(base, 'sudo apt-get remove -y hello-islet 2>&1 && ! command -v hello-islet')
})

test('on the runtime host apt-get installs what the machine lacks, and names the base where a package wants more', async () => {
  assert.equal((await online.getInfo()).runtime, 'host')
  const before = await say(online, 'dpkg-query --show | sort')
  assert.match(before, /^bash\t/m, 'the packages of the machine are known')
  const output = await say(online, `${OUR_APT} && sudo apt-get install -y hello-islet 2>&1`)
  assert.match(output, /1 newly installed/, 'nothing of the machine is installed again')
  assert.doesNotMatch(output, /warning|islet:/)
  assert.equal(await say(online, 'hello-islet'), 'hello from apt')
  const failed = await refused(online, 'sudo apt-get install -y needy-islet')
  assert.match(failed.stderr, /^islet: .*The runtime base is a whole Debian/m)
  await say(online, 'sudo apt-get remove -y needy-islet hello-islet 2>&1 && ! command -v hello-islet')
  assert.equal(await say(online, 'dpkg-query --show | sort'), before)
})

function hardwareAddress(address: string): string {
  const bytes = address.split('.').map((byte) => Number(byte).toString(16).padStart(2, '0'))
  return ['02', '49', ...bytes].join(':')
}

function fetchFrom(sandbox: Sandbox, host: string): Promise<string> {
  return say(sandbox, `curl -sf -m 20 http://${host}/hello`)
}

async function cannotFetch(sandbox: Sandbox, host: string): Promise<void> {
  const result = await refused(sandbox, `curl -s -m 4 http://${host}/hello`)
  assert.equal(result.stdout, '', host)
  assert.ok(
    [6, 7, 28].includes(result.exitCode),
    `${host}: no connection, not an error of HTTP (${result.exitCode})`,
  )
}
