import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { OutputLog } from '../output/output-log.ts'
import { NETWORK_HINT, networkHint, showsNoNetwork } from './network-hint.ts'

const SHOW_IT = [
  'curl: (6) Could not resolve host: example.com',
  'curl: (5) Could not resolve proxy: proxy.internal',
  "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
  'ssh: Could not resolve hostname github.com: Temporary failure in name resolution',
  'wget: unable to resolve host address ‘example.com’',
  "wget: bad address 'example.com'",
  "ping: bad address 'example.com'",
  'ping: example.com: Temporary failure in name resolution',
  'ping: example.com: Name or service not known',
  "E: Failed to fetch http://deb.debian.org/debian/dists/x  Temporary failure resolving 'deb.debian.org'",
  "Err:1 http://deb.debian.org/debian bookworm InRelease\n  Could not resolve 'deb.debian.org'",
  'npm error code EAI_AGAIN\nnpm error request to https://npm.islet.test/x failed, reason: getaddrinfo EAI_AGAIN npm.islet.test',
  "Error: getaddrinfo ENOTFOUND example.com\n    at GetAddrInfoReqWrap.onlookupall { code: 'ENOTFOUND' }",
  "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno -2] Name or service not known')': /simple/requests/",
  "HTTPSConnectionPool(host='pypi.islet.test', port=443): Failed to resolve 'pypi.islet.test' ([Errno -3] Temporary failure in name resolution)",
  'socket.gaierror: [Errno -5] No address associated with hostname',
  'Get "https://proxy.golang.org/x": dial tcp: lookup proxy.golang.org: no such host',
  'dial tcp: lookup example.com on [::1]:53: read udp: connection refused',
  'error sending request: dns error: failed to lookup address information: Try again',
  'connect: Network is unreachable',
  'Error: connect ENETUNREACH 198.51.100.1:80',
  'java.net.UnknownHostException: example.com',
]
const DO_NOT = [
  '',
  'grep: x: No such file or directory',
  "ModuleNotFoundError: No module named 'requests'",
  'error: could not resolve dependency tree\nnpm error ERESOLVE could not resolve',
  'Error: Cannot find module',
  'curl: (7) Failed to connect to 127.0.0.1 port 80: Connection refused',
  'psql: error: connection to server at "localhost" failed: Connection refused',
  'AssertionError: expected 404 not found',
  'Segmentation fault (core dumped)',
  'bad address in system call argument',
  'error[E0433]: failed to resolve: use of undeclared crate or module',
]

test('messages of programs about unresolved names are recognised', () => {
  for (const text of SHOW_IT) assert.ok(showsNoNetwork(text), text)
  for (const text of DO_NOT) assert.ok(!showsNoNetwork(text), text)
})

test('only the end of the output is searched, over both channels', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'islet-hint-'))
  t.after(() => rmSync(directory, { recursive: true }))
  let logs = 0
  const log = (...texts: string[]) => {
    const written = new OutputLog(join(directory, `${logs++}.log`), 1024 * 1024)
    for (const [index, text] of texts.entries())
      written.append(index % 2 === 0 ? 'stdout' : 'stderr', Buffer.from(text))
    written.close()
    return written
  }
  const said = 'curl: (6) Could not resolve host: a\n'
  assert.equal(networkHint(log(said)), NETWORK_HINT)
  assert.equal(networkHint(log('x'.repeat(100_000), said)), NETWORK_HINT)
  assert.equal(networkHint(log('fatal: Could not re', 'solve host: a')), NETWORK_HINT)
  assert.equal(networkHint(log(said, 'x'.repeat(100_000))), undefined)
  assert.equal(networkHint(log()), undefined)
})
