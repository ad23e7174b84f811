import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PROCESS, RESULT, SANDBOX, type Stub, startStub } from '../../sdk/test/stub.ts'
import { islet } from '../test/islet.ts'

const page = { sandboxes: [SANDBOX], total: 1 }

test('ls prints a table, ids with --quiet, and JSON with --json', async () => {
  await using stub = await startStub(() => ({ json: page }))
  const table = await islet(['ls'], stub)
  assert.match(table.stdout, /^ID +NAME +STATUS.*\nsbx-a+ +first +running /)
  assert.ok(!table.stdout.includes('\x1b'), 'no colours in a pipe')
  assert.equal((await islet(['ls', '-q'], stub)).stdout, `${SANDBOX.id}\n`)
  assert.deepEqual(JSON.parse((await islet(['ls', '--json'], stub)).stdout), [SANDBOX])
})

test('an empty list is nothing on stdout and a sentence on stderr', async () => {
  await using stub = await startStub(() => ({ json: { sandboxes: [], total: 0 } }))
  const { stdout, stderr, exitCode } = await islet(['ls'], stub)
  assert.equal(stdout, '')
  assert.match(stderr, /islet create/)
  assert.equal(exitCode, 0)
})

test('a failure ends with a hint, and with exit code 1', async () => {
  await using stub = await closed()
  const { stdout, stderr, exitCode } = await islet(['ls'], stub)
  assert.equal(stdout, '')
  assert.match(stderr, /^islet: No answer from .*\nhint: islet serve/)
  assert.equal(exitCode, 1)
})

test('with --json a failure is JSON on stderr', async () => {
  await using stub = await closed()
  const { stdout, stderr } = await islet(['ls', '--json'], stub)
  assert.equal(stdout, '')
  assert.equal(JSON.parse(stderr).error.code, 'connection_failed')
})

test('what cannot be meant ends with exit code 2', async () => {
  for (const words of [
    ['frob'],
    ['run'],
    ['run', '--memory', 'lots', 'true'],
    ['exec'],
    ['cp', 'a', 'b'],
    ['rm'],
  ]) {
    const { exitCode, stderr } = await islet(words)
    assert.equal(exitCode, 2, words.join(' '))
    assert.match(stderr, /hint:/)
  }
  const { stderr } = await islet(['run', '--json', '--memory', 'lots', 'true'])
  assert.equal(JSON.parse(stderr).error.code, 'usage')
})

test('a failure of Islet around a command is 125, a command that is not there 127', async () => {
  const answer = (code: string) => ({
    status: 422,
    json: { error: { code, message: 'No.', retryable: false } },
  })
  await using stub = await startStub(({ method, body }) => {
    if (method === 'GET') return { json: SANDBOX }
    return answer(body.includes('missing') ? 'command_not_found' : 'cwd_not_found')
  })
  assert.equal((await islet(['exec', SANDBOX.id, '--', 'ls', '/'], stub)).exitCode, 125)
  assert.equal((await islet(['exec', SANDBOX.id, '--', 'missing', '/'], stub)).exitCode, 127)
})

test('exec streams both outputs and stdin, and takes the exit code of the command', async () => {
  await using stub = await echoing()
  const { stdout, stderr, exitCode } = await islet(['exec', 'first', '--', 'cat', '-'], {
    ...stub,
    stdin: 'hello',
  })
  assert.equal(stdout, 'hello')
  assert.equal(stderr, 'bye')
  assert.equal(exitCode, 3)
  const started = stub.asked.find(({ path }) => path.endsWith('/processes'))
  assert.deepEqual(JSON.parse(started!.body), { command: ['cat', '-'], stdin: true })
})

test('options of the command need no separator, one word is shell text, and --no-stdin keeps stdin', async () => {
  await using stub = await echoing()
  await islet(['exec', '-n', 'first', 'ls', '-la', '--json'], stub)
  await islet(['exec', '-n', 'first', 'echo $HOME | wc'], stub)
  const bodies = stub.asked
    .filter(({ path }) => path.endsWith('/processes'))
    .map(({ body }) => JSON.parse(body))
  assert.deepEqual(bodies, [
    { command: ['ls', '-la', '--json'], stdin: false },
    { command: 'echo $HOME | wc', stdin: false },
  ])
})

test('a sandbox may be named by the beginning of its id, but not by one that two have', async () => {
  const other = { ...SANDBOX, id: 'sbx-aabbbbbbbbbbbbbbbbbb', name: null }
  await using stub = await startStub(({ path, method }) => {
    if (method === 'DELETE') return { json: SANDBOX }
    return { json: path === '/v1/sandboxes' ? { sandboxes: [SANDBOX, other], total: 2 } : SANDBOX }
  })
  assert.equal((await islet(['rm', 'aaa'], stub)).stdout, `${SANDBOX.id}\n`)
  const ambiguous = await islet(['rm', 'sbx-aa'], stub)
  assert.equal(ambiguous.exitCode, 2)
  assert.match(ambiguous.stderr, /2 sandboxes[\s\S]*sbx-aabb/)
  assert.match((await islet(['rm', 'zzz'], stub)).stderr, /islet ls/)
})

test('removing all needs a yes', async () => {
  await using stub = await startStub(({ method }) => ({ json: method === 'GET' ? page : SANDBOX }))
  assert.equal((await islet(['rm', '--all'], stub)).exitCode, 2)
  assert.equal((await islet(['rm', '--all', '--force'], stub)).stdout, `${SANDBOX.id}\n`)
})

test('a variable without a value is taken from here, so that secrets stay out of the command line', async () => {
  await using stub = await startStub(() => ({ status: 201, json: SANDBOX }))
  const { stdout } = await islet(['create', '-e', 'TOKEN', '-e', 'A=b=c'], {
    ...stub,
    env: { TOKEN: 's3cret' },
  })
  assert.equal(stdout, `${SANDBOX.id}\n`)
  assert.deepEqual(JSON.parse(stub.asked[0]!.body).env, { TOKEN: 's3cret', A: 'b=c' })
})

test('every command has help with an example, and nothing of it goes to stderr', async () => {
  for (const words of [[], ['run'], ['image', 'pull'], ['cp']]) {
    const { stdout, stderr, exitCode } = await islet([...words, '--help'])
    assert.match(stdout, /Example:\n {2}islet /)
    assert.equal(stderr, '')
    assert.equal(exitCode, 0)
  }
})

/** Nothing listens there. */
async function closed(): Promise<Stub> {
  const stub = await startStub(() => ({}))
  await stub[Symbol.asyncDispose]()
  return { ...stub, [Symbol.asyncDispose]: async () => {} }
}

/** A process that prints its stdin, and ends with a bye on stderr and 3: when stdin ends, or at once without one. */
function echoing(): Promise<Stub> {
  let hasStdin = false
  return startStub(
    ({ path, method, body }) => {
      if (path === '/v1/sandboxes') return { json: page }
      if (!path.endsWith('/processes') || method !== 'POST') return { json: SANDBOX }
      hasStdin = JSON.parse(body).stdin
      return { status: 201, json: PROCESS }
    },
    (socket) => {
      const end = () => {
        socket.send(Buffer.from('\x02bye'))
        socket.send(JSON.stringify({ type: 'exit', ...RESULT, exitCode: 3 }))
      }
      socket.on('message', (data, isBinary) => {
        if (isBinary) socket.send(Buffer.concat([Buffer.from([1]), data as Buffer]))
        else end()
      })
      socket.send(JSON.stringify({ type: 'start', process: PROCESS, truncated: false }))
      socket.send(JSON.stringify({ type: 'replay-end' }))
      if (!hasStdin) end()
    },
  )
}
