import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  createSandbox,
  ERRORS,
  type ErrorSpec,
  env,
  exec,
  fileMode,
  IsletError,
  idPattern,
  isErrorCode,
  isId,
  LIMITS,
  newId,
  parseCpuMillis,
  parseDurationMs,
  parseSizeBytes,
  ROUTES,
  type Route,
  routePath,
  sandboxPath,
  updateSandbox,
  userName,
  writeStdin,
} from './index.ts'

describe('units', () => {
  it('read durations, sizes and shares of a core as people write them', () => {
    assert.deepEqual(
      ['250ms', '30s', '1.5m', '24h', '7d', 5].map(parseDurationMs),
      [250, 30_000, 90_000, 86_400_000, 604_800_000, 5],
    )
    assert.deepEqual(
      ['256Mi', '1Gi', '500M', '10k', '7', '1.5Ki', 9].map(parseSizeBytes),
      [268_435_456, 1_073_741_824, 5e8, 1e4, 7, 1536, 9],
    )
    assert.deepEqual(['500m', '1.5', 2, 0.25].map(parseCpuMillis), [500, 1500, 2000, 250])
  })

  it('refuse invalid text, negative values and values that no number can hold', () => {
    for (const value of [
      '',
      '5',
      's',
      '-5s',
      '1e3s',
      '5 s',
      'Infinity',
      -1,
      Number.NaN,
      Number.POSITIVE_INFINITY,
    ]) {
      assert.equal(parseDurationMs(value), undefined, String(value))
    }
    for (const value of ['', 'Mi', '-1Mi', '1Xi', '99999999999Ti', -1])
      assert.equal(parseSizeBytes(value), undefined)
    for (const value of ['', 'm', '-1', '1.5.5', -1]) assert.equal(parseCpuMillis(value), undefined)
  })
})

describe('ids', () => {
  it('are DNS labels that say what they are, and are never the same', () => {
    const ids = Array.from({ length: 1000 }, () => newId('sandbox'))
    assert.equal(new Set(ids).size, ids.length)
    for (const id of ids) assert.match(id, /^sbx-[a-z0-9]{20}$/)
    assert.ok(ids[0]!.length <= 63)
  })

  it('of one kind are not those of another', () => {
    assert.equal(isId('sandbox', newId('sandbox')), true)
    assert.equal(isId('sandbox', newId('process')), false)
    assert.equal(isId('sandbox', `${newId('sandbox')}\n`), false)
    assert.equal(idPattern('process').test(`x${newId('process')}`), false)
  })
})

describe('errors', () => {
  it('have a status that fits, a sentence, and are retryable only when trying again may help', () => {
    for (const [code, { status, retryable, message, hint }] of Object.entries<ErrorSpec>(ERRORS)) {
      assert.match(code, /^[a-z]+(_[a-z]+)*$/)
      assert.ok(status >= 400 && status < 600, code)
      assert.match(message, /^[A-Z].*\.$/, code)
      if (hint !== undefined) assert.ok(hint.length > 0, code)
      if (retryable) assert.ok([408, 409, 429].includes(status) || status >= 500, code)
    }
  })

  it('become the body that clients branch on', () => {
    const error = new IsletError('draining', undefined, { details: { a: 1 } })
    assert.deepEqual(error.toBody(), {
      error: {
        code: 'draining',
        message: 'The server is shutting down.',
        retryable: true,
        details: { a: 1 },
      },
    })
    assert.equal(error.status, 503)
    assert.equal(new IsletError('conflict', 'mine', { hint: 'so' }).toBody().error.hint, 'so')
  })

  it('are told from other text', () => {
    assert.equal(isErrorCode('conflict'), true)
    for (const value of ['toString', '__proto__', '', undefined, 1]) assert.equal(isErrorCode(value), false)
  })
})

describe('routes', () => {
  it('are each one method of one path', () => {
    const all = Object.values<Route>(ROUTES).map(({ method, path }) => `${method} ${path}`)
    assert.equal(new Set(all).size, all.length)
  })

  it('say only what their method can do', () => {
    for (const [name, route] of Object.entries<Route>(ROUTES)) {
      if (route.method === 'GET' || route.method === 'DELETE') assert.equal(route.body, undefined, name)
      if (route.response === null) assert.ok([101, 204, 303].includes(route.status), name)
      if (route.websocket) assert.deepEqual([route.method, route.status], ['GET', 101], name)
    }
  })

  it('become paths with their parameters escaped', () => {
    assert.equal(routePath('removeImage', { name: 'a/b:c d' }), '/v1/images/a%2Fb%3Ac%20d')
  })

  it('refuse a parameter that is missing or would be another address', () => {
    for (const sid of [undefined, null, '', '.', '..', 7])
      assert.throws(() => routePath('snapshotLineage', { sid } as never), {
        code: 'bad_request',
        message: /snapshotLineage takes the id or tag of a snapshot/,
        details: { parameter: 'sid' },
      })
  })
})

describe('schemas', () => {
  const accepts = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown) =>
    schema.safeParse(value).success

  it('limit paths to what the kernel accepts', () => {
    for (const path of ['/', 'a', '../x', '/a b', 'é'.repeat(2047)])
      assert.ok(accepts(sandboxPath, path), path)
    for (const path of ['', '/a\0', 'x'.repeat(4096), 'é'.repeat(2048), 1, null])
      assert.ok(!accepts(sandboxPath, path))
  })

  it('limit environments to what the kernel accepts', () => {
    assert.ok(accepts(env, { A: '', 'a.b-c': 'x', ü: 'y' }))
    for (const bad of [{ '': 'x' }, { 'A=': 'x' }, { A: 'x\0' }, { A: 1 }, { A: null }, [], 'A=b'])
      assert.ok(!accepts(env, bad))
    assert.ok(!accepts(env, { A: 'x'.repeat(LIMITS.envValueBytes + 1) }))
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`V${index}`, '']))
    assert.ok(accepts(env, many(LIMITS.envEntries)))
    assert.ok(!accepts(env, many(LIMITS.envEntries + 1)))
  })

  it('read modes as octal and users as names or numbers', () => {
    assert.equal(fileMode.parse('0755'), 0o755)
    assert.equal(fileMode.parse('644'), 0o644)
    assert.equal(fileMode.parse(420), 0o644)
    for (const mode of ['0888', '', 'rwx', -1, 0o10000]) assert.ok(!accepts(fileMode, mode), String(mode))
    for (const user of ['root', '0', '1000:1000', 'www-data:users', '_apt'])
      assert.ok(accepts(userName, user), user)
    for (const user of ['', 'a b', '-x', 'a:b:c', ':', 'a;b', 'a\n'])
      assert.ok(!accepts(userName, user), user)
  })

  it('turn what people write into numbers', () => {
    const { resources } = createSandbox.parse({ resources: { memory: '512Mi', cpu: '500m', disk: 1e9 } })
    assert.deepEqual(resources, { memory: 536_870_912, cpu: 500, disk: 1e9 })
    assert.equal(exec.parse({ command: 'true', timeout: '30s' }).timeout, 30_000)
  })

  it('refuse resources beyond reason', () => {
    for (const resources of [
      { memory: 1 },
      { memory: '2Ti' },
      { cpu: 0 },
      { cpu: '5m' },
      { pids: 1 },
      { pids: 1e6 },
      { gpu: 1 },
    ]) {
      assert.ok(!accepts(createSandbox, { resources }), JSON.stringify(resources))
    }
  })

  it('let an update take away what null names', () => {
    assert.ok(accepts(updateSandbox, { name: null, env: { A: null, B: 'x' } }))
    assert.ok(!accepts(createSandbox, { env: { A: null } }))
    assert.ok(!accepts(updateSandbox, { runtime: 'base' }))
  })

  it('refuse what says it is base64 and is not', () => {
    for (const stdin of ['', 'AP8=', 'AP8', 'AAAA'])
      assert.ok(accepts(exec, { command: 'a', stdin, stdinEncoding: 'base64' }), stdin)
    for (const stdin of ['§', 'A', 'AP8==', 'A=AA', 'AP 8', 'AP8\n']) {
      assert.ok(!accepts(exec, { command: 'a', stdin, stdinEncoding: 'base64' }), stdin)
      assert.ok(accepts(exec, { command: 'a', stdin }))
    }
    const file = (content: string) => ({ files: [{ path: '/a', content, encoding: 'base64' }] })
    assert.ok(accepts(createSandbox, file('AP8=')))
    assert.ok(!accepts(createSandbox, file('?')))
  })

  it('count the bytes that stdin and files stand for, as text and as base64', () => {
    const most = Buffer.alloc(LIMITS.stdinBytes)
    const more = Buffer.alloc(LIMITS.stdinBytes + 1)
    const text = 'é'.repeat(LIMITS.stdinBytes / 2)
    for (const [schema, name, encoding] of [
      [exec, 'stdin', 'stdinEncoding'],
      [writeStdin, 'data', 'encoding'],
    ] as const) {
      const rest = schema === exec ? { command: 'a' } : {}
      assert.ok(accepts(schema, { ...rest, [name]: most.toString('base64'), [encoding]: 'base64' }))
      assert.ok(!accepts(schema, { ...rest, [name]: more.toString('base64'), [encoding]: 'base64' }))
      assert.ok(accepts(schema, { ...rest, [name]: text }))
      assert.ok(!accepts(schema, { ...rest, [name]: `${text}.` }))
    }
    const content = Buffer.alloc(LIMITS.givenFilesBytes).toString('base64')
    assert.ok(accepts(createSandbox, { files: [{ path: '/a', content, encoding: 'base64' }] }))
    assert.ok(!accepts(createSandbox, { files: [{ path: '/a', content, encoding: 'utf8' }] }))
  })

  it('refuse commands that no kernel would start', () => {
    for (const command of [
      '',
      [],
      [''],
      ['a\0'],
      ['x'.repeat(LIMITS.argumentBytes + 1)],
      Array(5000).fill('x'),
      [1],
      {},
    ]) {
      assert.ok(!accepts(exec, { command }))
    }
    assert.ok(accepts(exec, { command: ['printf', ''] }))
  })
})
