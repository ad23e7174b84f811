import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { after, before, describe, it } from 'node:test'
import { needs } from '../../../../../tests/support/programs.ts'
import { tracesOf } from '../oci/traces.ts'
import type { Gaps } from './gaps.ts'
import { type Box, bind, type Harness, openBox, recordOf } from './harness.ts'
import { type Internet, openInternet } from './internet.ts'

needs('nft')

/** Opens an engine whose sandboxes resolve names at `nameserver`. */
export type OpenNetworked = (nameserver: string, allowRanges: readonly string[]) => Promise<Harness>

const ON = { network: { enabled: true } }

export function network(harness: () => Harness, gaps: Gaps, open: OpenNetworked | undefined): void {
  it('has only a loopback without a network', gaps.unless('network'), async () => {
    await using box = await openBox(harness())
    await hasNoNetwork(box)
  })

  it('lets every user bind low ports', gaps.unless('network'), async () => {
    await using box = await openBox(harness())
    const listen =
      "import socket; s = socket.socket(); s.bind(('127.0.0.1', 80)); s.listen(); print('listens')"
    assert.equal(await box.print(['/usr/bin/python3', '-c', listen], { user: '1000' }), 'listens')
  })

  it('says so when its network cannot be switched', async (t) => {
    const { engine } = harness()
    if (engine.capabilities.networkSwitch === true) return t.skip('It can be switched.')
    await using box = await openBox(harness())
    const { missing } = engine.capabilities.networkSwitch
    await assert.rejects(engine.connect(box.cell, ON.network), { code: 'not_supported', message: missing })
  })

  describe('with a network', gaps.unless('network'), () => {
    let networked: Harness
    let internet: Internet
    let box: Box
    let server: Server
    let port: number

    before(async () => {
      const { slot, gateway } = harness().instance
      internet = await openInternet(slot!, gateway)
      networked = await open!(internet.host, [])
      box = await openBox(networked, ON)
      server = createServer((socket) => socket.destroy()).listen(0, '0.0.0.0')
      await once(server, 'listening')
      port = (server.address() as { port: number }).port
    })

    after(async () => {
      server?.close()
      await box?.[Symbol.asyncDispose]()
      await networked?.close()
      await internet?.[Symbol.asyncDispose]()
    })

    it('has one more interface, with IPv4 only', async () => {
      assert.deepEqual(await interfaces(box), ['eth0', 'lo'])
      assert.match(box.bound.address!, /^10\.\d+\.\d+\.\d+$/)
      assert.equal(box.bound.nameserver, networked.instance.gateway)
      assert.doesNotMatch(await box.print('cat /proc/net/if_inet6'), /eth0/)
    })

    it(
      'has what it is to have when another was expected as it was started',
      gaps.unless('lateRoot'),
      async () => {
        await using usual = await openBox(networked, ON)
        for (let i = 0; i < 8; i++) await bind(networked, usual.cell, ON)
        await using wanted = await openBox(networked, { ...ON, background: true })
        assert.deepEqual(await interfaces(wanted), ['eth0', 'lo'])
        assert.doesNotMatch(await wanted.print('cat /proc/net/if_inet6'), /eth0/)
        assert.equal(await fetches(wanted, `http://${internet.host}/`), internet.ours)
        assert.notEqual(await connects(wanted, usual.bound.address!, 80), 'ECONNREFUSED')
        await using unwanted = await openBox(networked, { background: true })
        assert.equal((await recordOf(networked, unwanted.cell.id)).network, true, 'it had one before')
        await hasNoNetwork(unwanted)
      },
    )

    it(
      'gets and loses its network while it runs, with its connections',
      gaps.unless('networkSwitch'),
      async () => {
        const { engine } = networked
        await using late = await openBox(networked)
        await hasNoNetwork(late)
        const [place, again] = [
          await engine.connect(late.cell, ON.network),
          await engine.connect(late.cell, ON.network),
        ]
        assert.deepEqual(place, again)
        assert.equal(place.nameserver, networked.instance.gateway)
        assert.deepEqual(await interfaces(late), ['eth0', 'lo'])
        assert.doesNotMatch(await late.print('cat /proc/net/if_inet6'), /eth0/)
        assert.equal(await fetches(late, `http://${internet.host}/`), internet.ours)
        assert.notEqual(
          await connects(late, box.bound.address!, 80),
          'ECONNREFUSED',
          'others are out of reach',
        )

        const holding = late.print(['/usr/bin/python3', '-c', holdConnections(internet.host)])
        while ((await late.run('test -e /tmp/held')).code !== 0);
        await engine.connect(late.cell, { enabled: false })
        assert.equal(await holding, 'ECONNABORTED ECONNABORTED loopback')
        await hasNoNetwork(late)
        await engine.connect(late.cell, { enabled: false })
        const record = await recordOf(networked, late.cell.id)
        assert.equal(record.network, undefined)
        assert.deepEqual(
          (await tracesOf(networked.instance)).filter((trace) => trace.endsWith(`v${record.index}`)),
          [],
        )

        await engine.freeze(late.cell)
        await engine.connect(late.cell, ON.network)
        await engine.thaw(late.cell)
        assert.equal(await fetches(late, `http://${internet.host}/`), internet.ours)
        await engine.freeze(late.cell)
        await engine.connect(late.cell, { enabled: false })
        await engine.thaw(late.cell)
        await hasNoNetwork(late)
      },
    )

    it('reaches the internet, which sees the machine and not the sandbox', async () => {
      assert.equal(await fetches(box, `http://${internet.host}/`), internet.ours)
    })

    it('looks up names, over UDP and TCP', async () => {
      const lookup = "import socket; print(socket.gethostbyname('name.example'))"
      assert.equal(await box.print(['/usr/bin/python3', '-c', lookup], { user: '1000' }), internet.host)
      assert.equal(await fetches(box, 'http://name.example:8080/'), internet.ours)
      const overTcp = `import socket, struct
q = b'\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x01a\\x07example\\x00\\x00\\x01\\x00\\x01'
s = socket.create_connection(('${box.bound.nameserver}', 53)); s.sendall(struct.pack('!H', len(q)) + q)
f = s.makefile('rb'); a = f.read(struct.unpack('!H', f.read(2))[0]); print(a[:2] == q[:2], socket.inet_ntoa(a[-4:]))`
      assert.equal(await box.print(['/usr/bin/python3', '-c', overTcp]), `True ${internet.host}`)
    })

    it('pings without raw sockets', async () => {
      const ping = `import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); s.settimeout(5)
s.sendto(b'\\x08\\x00\\x00\\x00\\x00\\x00\\x00\\x01hello', ('${internet.host}', 0)); print(s.recv(100)[-5:].decode())`
      assert.equal(await box.print(['/usr/bin/python3', '-c', ping], { user: '1000' }), 'hello')
    })

    it('reaches no private, link-local or metadata address', async () => {
      // The machine itself reaches it, so a refusal below comes from the firewall.
      assert.equal(await hostConnects(internet.privateHost, 80), true)
      assert.equal(await hostConnects(internet.linkLocalHost, 80), true)
      const addresses = [
        internet.privateHost,
        internet.linkLocalHost,
        '169.254.169.254',
        '172.16.0.1',
        '192.168.0.1',
      ]
      for (const address of [...addresses, '100.64.0.1', '224.0.0.1', '255.255.255.255', '240.0.0.1']) {
        assert.notEqual(await connects(box, address, 80), 'connected', address)
      }
    })

    it('reaches no port of this machine', async () => {
      assert.equal(await hostConnects('127.0.0.1', port), true)
      const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
      const addresses = own.filter(({ family }) => family === 'IPv4').map(({ address }) => address)
      assert.ok(addresses.includes(internet.ours))
      for (const address of new Set([...addresses, networked.instance.gateway])) {
        assert.notEqual(await connects(box, address, port), 'connected', address)
      }
    })

    it('reaches no other sandbox', async () => {
      await using other = await openBox(networked, ON)
      const listen =
        'import http.server as h; h.ThreadingHTTPServer(("0.0.0.0", 8080), h.SimpleHTTPRequestHandler).serve_forever()'
      other.run(['/usr/bin/python3', '-c', listen]).catch(() => {})
      while ((await connects(other, other.bound.address!, 8080)) !== 'connected');
      assert.notEqual(await connects(box, other.bound.address!, 8080), 'connected')
      assert.equal(await internet.reaches(other.bound.address!, 8080), false)
    })

    it('cannot change its address, routes or firewall', async () => {
      for (const attempt of [
        'ip addr add 10.0.0.9/8 dev eth0',
        'ip link set eth0 down',
        'ip route add 10.0.0.0/8 dev eth0',
        'nft flush ruleset',
        'echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6',
      ]) {
        assert.notEqual((await box.run(attempt)).code, 0, attempt)
      }
    })

    it('reaches a private range that the settings allow', async () => {
      await using allowed = await openAllowing([internet.privateRange])
      await using other = await openBox(allowed.harness, ON)
      assert.equal(
        await fetches(other, `http://${internet.privateHost}/`),
        internet.privateRange.replace('0/24', '1'),
      )
    })

    async function openAllowing(ranges: readonly string[]): Promise<AsyncDisposable & { harness: Harness }> {
      const another = await open!(internet.host, ranges)
      return { harness: another, [Symbol.asyncDispose]: () => another.close() }
    }
  })
}

async function interfaces(box: Box): Promise<string[]> {
  const lines = (await box.print('cat /proc/net/dev')).split('\n').slice(2)
  return lines.map((line) => line.split(':')[0]!.trim()).sort()
}

/** Opens two connections to the outside, as IPv4 and as mapped IPv6, and one inside, and prints how they end. */
function holdConnections(host: string): string {
  return `import socket, errno
def ends(s):
  try: s.recv(1); return 'ended'
  except OSError as e: return errno.errorcode[e.errno]
tcp = socket.create_connection(('${host}', 80))
mapped = socket.socket(socket.AF_INET6); mapped.connect(('::ffff:${host}', 80))
listener = socket.create_server(('127.0.0.1', 0)); inner = socket.create_connection(listener.getsockname()); peer, _ = listener.accept()
open('/tmp/held', 'w').close()
first = ends(tcp); second = ends(mapped); peer.sendall(b'x')
print(first, second, 'loopback' if inner.recv(1) == b'x' else 'nothing')`
}

async function hasNoNetwork(box: Box): Promise<void> {
  assert.deepEqual(await interfaces(box), ['lo'])
  assert.equal(await connects(box, '127.0.0.1', 1), 'ECONNREFUSED')
  assert.match(await connects(box, '198.51.100.250', 80), /^E(NET|HOST)UNREACH$/)
}

/** `connected`, or the name of the error. */
async function connects(box: Box, address: string, port: number): Promise<string> {
  const program = `import socket, errno
try: socket.create_connection(('${address}', ${port}), 2); print('connected')
except TimeoutError: print('ETIMEDOUT')
except OSError as e: print(errno.errorcode.get(e.errno, e))`
  return box.print(['/usr/bin/python3', '-c', program])
}

async function fetches(box: Box, url: string): Promise<string> {
  const program = `import urllib.request; print(urllib.request.urlopen('${url}', timeout=10).read().decode())`
  return box.print(['/usr/bin/python3', '-c', program])
}

async function hostConnects(address: string, port: number): Promise<boolean> {
  const socket = connect(port, address)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
