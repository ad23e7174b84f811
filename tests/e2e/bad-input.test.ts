// Any bad input gets a 4xx of the table with a body that says what is wrong; the server keeps running.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ERRORS, type ErrorCode } from '@islet/contract'
import { type RawRequest, rawRequest } from '../support/raw.ts'
import { startSuite } from '../support/suite.ts'

const suite = await startSuite({ env: { ISLET_DEFAULT_RUNTIME: 'host' } })
const { server } = suite
const sandbox = await suite.create()
const of = `/v1/sandboxes/${sandbox.id}`
const NOBODY = 'sbx-00000000000000000000'
const long = (length: number): string => 'x'.repeat(length)
const manyVariables = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`V${index}`, 'x']))

type Row = [title: string, request: RawRequest & { json?: unknown; text?: string }, ...codes: ErrorCode[]]
const get = (path: string) => ({ path })
const post = (path: string, json: unknown) => ({ method: 'POST', path, json })
const create = (json: unknown) => post('/v1/sandboxes', json)
const exec = (json: unknown) => post(`${of}/exec`, json)

const rows: Row[] = [
  ['an unknown runtime', create({ runtime: 'nosuch' }), 'runtime_not_found'],
  ['a runtime that is a path', create({ runtime: '../../etc' }), 'bad_request'],
  ['an unknown sandbox', get(`/v1/sandboxes/${NOBODY}`), 'sandbox_not_found'],
  [
    'exec in an unknown sandbox',
    post(`/v1/sandboxes/${NOBODY}/exec`, { command: 'id' }),
    'sandbox_not_found',
  ],
  ['files of an unknown sandbox', get(`/v1/sandboxes/${NOBODY}/files?path=/etc/passwd`), 'sandbox_not_found'],
  [
    'a delete of an unknown sandbox',
    { method: 'DELETE', path: `/v1/sandboxes/${NOBODY}` },
    'sandbox_not_found',
  ],
  ['an id that is none', get('/v1/sandboxes/nonsense'), 'sandbox_not_found'],
  ['an id that climbs', get('/v1/sandboxes/..%2f..%2fetc%2fpasswd'), 'sandbox_not_found'],
  ['an id with NUL', get('/v1/sandboxes/sbx-%00'), 'sandbox_not_found'],
  ['an id of 10,000 characters', get(`/v1/sandboxes/${long(10_000)}`), 'sandbox_not_found'],
  ['an id that is badly encoded', get('/v1/sandboxes/%zz'), 'sandbox_not_found', 'bad_request'],
  ['an unknown process', get(`${of}/processes/prc-00000000000000000000`), 'process_not_found'],
  ['a process id that climbs', get(`${of}/processes/..%2f..%2fx/output`), 'process_not_found'],
  [
    'a signal to an unknown process',
    post(`${of}/processes/prc-00000000000000000000/signal`, {}),
    'process_not_found',
  ],
  ['an unknown path', get(`${of}/files?path=/no/such`), 'file_not_found'],
  ['an empty path', get(`${of}/files?path=`), 'bad_request', 'invalid_path'],
  ['no path', get(`${of}/files`), 'bad_request'],
  ['a path given twice', get(`${of}/files?path=/a&path=/b`), 'bad_request'],
  ['a path with NUL', get(`${of}/files?path=/etc/pass%00wd`), 'invalid_path'],
  ['a stat with NUL', get(`${of}/files/stat?path=%00`), 'invalid_path'],
  ['a path of 5,000 bytes', get(`${of}/files?path=${long(5000)}`), 'invalid_path'],
  [
    'a name of 300 bytes',
    get(`${of}/files?path=/${long(300)}`),
    'invalid_path',
    'file_not_found',
    'bad_request',
  ],
  ['a path that is not UTF-8', get(`${of}/files?path=/%ff%fe`), 'bad_request'],
  ['an unknown query field', get(`${of}/files?path=/etc/passwd&x=1`), 'bad_request'],
  ['a directory as a file', get(`${of}/files?path=/etc`), 'is_a_directory'],
  ['a file as a directory', get(`${of}/files/list?path=/etc/passwd`), 'not_a_directory'],
  ['a depth of 1,000', get(`${of}/files/list?path=/&depth=1000`), 'bad_request'],
  ['a negative limit', get(`${of}/files/list?path=/&limit=-1`), 'bad_request'],
  ['a mkdir with NUL', post(`${of}/files/mkdir`, { path: '/tmp/a\0b' }), 'invalid_path'],
  ['a move of nothing', post(`${of}/files/move`, { from: '/no/such', to: '/tmp/x' }), 'file_not_found'],
  ['a mode that is none', post(`${of}/files/mkdir`, { path: '/tmp/a', mode: '9999' }), 'bad_request'],
  [
    'an owner that is not there',
    post(`${of}/files/mkdir`, { path: '/tmp/own', owner: 'ghost' }),
    'user_not_found',
  ],
  ['removal of the root', { method: 'DELETE', path: `${of}/files?path=/&recursive=true` }, 'invalid_path'],
  ['an unknown user', exec({ command: 'id', user: 'ghost' }), 'user_not_found'],
  ['a user that is none', exec({ command: 'id', user: 'a b;c' }), 'bad_request'],
  ['an unknown directory', exec({ command: 'id', cwd: '/no/such' }), 'cwd_not_found'],
  ['a directory that is a file', exec({ command: 'id', cwd: '/etc/passwd' }), 'not_a_directory'],
  ['an unknown command', exec({ command: ['no-such-program'] }), 'command_not_found'],
  ['a command that is no program', exec({ command: ['/etc/passwd'] }), 'command_not_executable'],
  ['a command that is a directory', exec({ command: ['/etc'] }), 'command_not_executable'],
  ['no command', exec({}), 'bad_request'],
  ['an empty command', exec({ command: '' }), 'bad_request'],
  ['an empty argv', exec({ command: [] }), 'bad_request'],
  ['a command that is a number', exec({ command: 7 }), 'bad_request'],
  ['NUL in the command', exec({ command: 'echo a\0b' }), 'bad_request'],
  ['NUL in an argument', exec({ command: ['echo', 'a\0b'] }), 'bad_request'],
  ['NUL in a variable', exec({ command: 'id', env: { A: 'a\0b' } }), 'bad_request'],
  ['NUL in the name of a variable', exec({ command: 'id', env: { 'A\0': 'b' } }), 'bad_request'],
  ['= in the name of a variable', exec({ command: 'id', env: { 'A=B': 'c' } }), 'bad_request'],
  ['NUL in the directory', exec({ command: 'id', cwd: '/tmp\0' }), 'invalid_path'],
  ['10,000 variables', exec({ command: 'id', env: manyVariables }), 'bad_request'],
  ['10,000 arguments', exec({ command: Array(10_000).fill('x') }), 'bad_request'],
  ['an argument of 1 MB', exec({ command: ['echo', long(1_000_000)] }), 'bad_request'],
  ['a negative timeout', exec({ command: 'id', timeout: -1 }), 'bad_request'],
  ['a timeout of a year', exec({ command: 'id', timeout: '365d' }), 'bad_request'],
  ['a timeout that is none', exec({ command: 'id', timeout: 'soon' }), 'bad_request'],
  ['an output bound of 1 TB', exec({ command: 'id', maxOutputBytes: 1e12 }), 'bad_request'],
  ['an unknown field', exec({ command: 'id', comand: 'x' }), 'bad_request'],
  ['an encoding that is none', exec({ command: 'id', encoding: 'latin1' }), 'bad_request'],
  ['invalid JSON', { ...exec(undefined), text: '{"command": ' }, 'invalid_json'],
  ['JSON that is a list', exec([]), 'bad_request'],
  ['JSON that is null', exec(null), 'bad_request'],
  [
    'JSON in latin-1',
    { ...exec(undefined), body: [Buffer.from('{"command":"\xe9"}', 'latin1')] },
    'invalid_json',
  ],
  ['a form', { ...exec(undefined), text: 'a=b', headers: { 'Content-Type': 'text/plain' } }, 'invalid_json'],
  [
    'JSON nested 100,000 deep',
    { ...create(undefined), text: `{"metadata":{"a":${'['.repeat(1e5)}${']'.repeat(1e5)}}}` },
    'bad_request',
  ],
  ['a huge name', create({ name: long(1000) }), 'bad_request'],
  ['a name with a line end', create({ name: 'a\nb' }), 'bad_request'],
  ['metadata of 100 KB', create({ metadata: { a: long(100_000) } }), 'bad_request'],
  ['no memory', create({ resources: { memory: 0 } }), 'bad_request'],
  ['negative memory', create({ resources: { memory: -1 } }), 'bad_request'],
  ['absurd memory', create({ resources: { memory: '9999Ti' } }), 'bad_request'],
  ['absurd cpu', create({ resources: { cpu: 1e9 } }), 'bad_request'],
  ['absurd pids', create({ resources: { pids: 1e9 } }), 'bad_request'],
  ['absurd disk', create({ resources: { disk: 1e30 } }), 'bad_request'],
  ['a network that is text', create({ network: 'on' }), 'bad_request'],
  ['a file with NUL in its path', create({ files: [{ path: 'a\0', content: '' }] }), 'invalid_path'],
  ['files at create that is no list', create({ files: { a: 'b' } }), 'bad_request'],
  ['a directory where a file goes', create({ files: [{ path: '/etc', content: '' }] }), 'is_a_directory'],
  ['a status that is none', get('/v1/sandboxes?status=sleepy'), 'bad_request'],
  ['a limit of 0', get('/v1/sandboxes?limit=0'), 'bad_request'],
  ['a cursor that is none', get('/v1/sandboxes?cursor=%27%3B--'), 'bad_request'],
  ['metadata without =', get('/v1/sandboxes?metadata=x'), 'bad_request'],
  ['an unknown route', get('/v1/nothing'), 'route_not_found'],
  ['beside the root', get('/index.html'), 'route_not_found'],
  ['a wrong method', { method: 'PUT', path: '/v1/sandboxes' }, 'method_not_allowed'],
  ['another wrong method', { method: 'POST', path: of }, 'method_not_allowed'],
  ['no key', { path: '/v1/sandboxes', headers: { Authorization: '' } }, 'unauthorized'],
  ['a wrong key', { path: '/v1/sandboxes', headers: { Authorization: 'Bearer nonsense' } }, 'unauthorized'],
  [
    'another kind of key',
    { path: '/v1/sandboxes', headers: { Authorization: 'Basic YTpi' } },
    'unauthorized',
  ],
  ['another Host', { path: '/health', headers: { Host: 'evil.example' } }, 'forbidden'],
  [
    'a key of one-time use with a blank',
    { ...create({}), headers: { 'Idempotency-Key': 'a b' } },
    'invalid_header',
  ],
  ['a huge Idempotency-Key', { ...create({}), headers: { 'Idempotency-Key': long(300) } }, 'invalid_header'],
  ['a gzip body', { ...create({}), headers: { 'Content-Encoding': 'gzip' } }, 'invalid_header'],
  ['huge headers', { path: '/health', headers: { 'X-Long': long(100_000) } }, 'headers_too_large'],
  [
    'an attach without an upgrade',
    get(`${of}/processes/prc-00000000000000000000/attach`),
    'bad_request',
    'process_not_found',
  ],
  [
    'an update with an unknown field',
    { method: 'PATCH', path: of, json: { runtime: 'host' } },
    'bad_request',
  ],
  [
    'stdin that is not base64',
    exec({ command: 'cat', stdin: '***', stdinEncoding: 'base64' }),
    'bad_request',
  ],
  [
    'an archive that is none',
    { method: 'PUT', path: `${of}/files/archive?path=/tmp`, text: long(2048) },
    'bad_request',
  ],
]

describe('is refused with a code:', { concurrency: 8 }, () => {
  for (const [title, request, ...codes] of rows) {
    test(title, async () => {
      const text = request.text ?? (request.json === undefined ? undefined : JSON.stringify(request.json))
      const body = request.body ?? (text === undefined ? undefined : [text])
      const length = body === undefined ? 0 : Buffer.byteLength(text ?? (request.body as Buffer[])[0]!)
      const headers = {
        ...(body && { 'Content-Type': 'application/json', 'Content-Length': String(length) }),
        ...request.headers,
      }
      const answer = await rawRequest(server, { ...request, body, headers })
      const { error } = JSON.parse(answer.body) as { error: { code: ErrorCode; message: string } }
      assert.ok(codes.includes(error.code), `${error.code} (${error.message}), not ${codes.join(' or ')}`)
      assert.equal(answer.status, ERRORS[error.code].status)
      assert.ok(answer.status >= 400 && answer.status < 500)
      assert.ok(error.message.length > 5 && error.message.length < 1000)
    })
  }
})

test('a body of 1 GB to a JSON route is refused before it has arrived', async () => {
  const megabyte = Buffer.alloc(1024 * 1024, 'x')
  let sent = 0
  const body = function* () {
    for (; sent < 1024; sent++)
      yield Buffer.concat([Buffer.from('100000\r\n'), megabyte, Buffer.from('\r\n')])
  }
  const framings: Record<string, string>[] = [
    { 'Transfer-Encoding': 'chunked' },
    { 'Content-Length': String(2 ** 30) },
  ]
  for (const headers of framings) {
    sent = 0
    const request = {
      method: 'POST',
      path: `${of}/exec`,
      headers: { 'Content-Type': 'application/json', ...headers },
    }
    const answer = await rawRequest(server, { ...request, body: body() })
    assert.equal(answer.status, 413)
    assert.equal(JSON.parse(answer.body).error.code, 'body_too_large')
    assert.ok(sent < 200, `${sent} MB were taken`)
  }
})

test('after all that the server works and nothing was made', async () => {
  const { sandboxes, total } = await suite.islet.sandboxes.list({ status: 'all' })
  assert.deepEqual([sandboxes.map(({ id }) => id), total], [[sandbox.id], 1])
  assert.equal((await sandbox.runCommand('echo fine; ls -A /tmp')).stdout, 'fine\n')
  assert.equal((await sandbox.exec.list({ status: 'running' })).length, 0)
  assert.doesNotMatch(server.output, /"level":"(error|fatal)"/)
})
