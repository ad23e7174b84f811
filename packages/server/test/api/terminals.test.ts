import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  LIMITS,
  newId,
  type Sandbox,
  type TerminalCommandInfo,
  type TerminalInfo,
  terminalCommand,
  terminalInfo,
} from '@islet/contract'
import { makeGate } from '../support/barrier.ts'
import { Client } from '../support/client.ts'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'

describe('terminals', () => {
  let api: TestApi
  let sandbox: Sandbox
  let terminals: string
  before(async () => {
    api = await startTestApi()
    sandbox = await api.createSandbox()
    terminals = `/v1/sandboxes/${sandbox.id}/terminals`
  })
  after(() => api[Symbol.asyncDispose]())

  const create = async (body: object = {}, path = terminals) => {
    const response = await api.call('POST', path, body)
    assert.equal(response.status, 201)
    return terminalInfo.parse(await response.json())
  }
  const run = async ({ id }: TerminalInfo, body: object) => {
    const response = await api.call('POST', `${terminals}/${id}/commands`, body)
    assert.equal(response.status, 200)
    return terminalCommand.parse(await response.json())
  }
  const get = async ({ id }: TerminalInfo) =>
    terminalInfo.parse(await (await api.call('GET', `${terminals}/${id}`)).json())
  const list = async () =>
    ((await (await api.call('GET', terminals)).json()) as { terminals: TerminalInfo[] }).terminals
  const destroy = ({ id }: { id: string }) => api.call('DELETE', `${terminals}/${id}`)
  const attach = ({ channel }: TerminalInfo) => Client.open(api.url.replace('http', 'ws') + channel)

  it('run commands and remember them, oldest first', async () => {
    const terminal = await create({ env: { A: '1', B: '1' } })
    assert.deepEqual([terminal.pty, terminal.status, terminal.channel], [false, 'ready', null])
    const first = await run(terminal, { command: 'echo $A$B; echo oops >&2; exit 3', env: { B: '2' } })
    assert.deepEqual([first.status, first.exitCode], ['failed', 3])
    assert.deepEqual([first.stdout, first.stderr, first.truncated], ['12\n', 'oops\n', false])
    assert.ok(first.durationMs !== null && first.finishedAt !== null)
    const gate = makeGate(sandbox)
    const second = await run(terminal, { command: 'cat gate; echo done', background: true })
    assert.deepEqual([second.status, second.exitCode, second.finishedAt], ['running', null, null])
    await (await gate.reached()).open()
    const waited = await api.call('GET', `${terminals}/${terminal.id}/commands/${second.id}?wait=60000`)
    const ended = terminalCommand.parse(await waited.json())
    assert.deepEqual([ended.status, ended.exitCode, ended.stdout], ['completed', 0, 'done\n'])
    const all = await api.call('GET', `${terminals}/${terminal.id}/commands`)
    const { commands } = (await all.json()) as { commands: TerminalCommandInfo[] }
    assert.deepEqual(commands, [first, ended])
    await destroy(terminal)
  })

  it('have a working directory that their commands start from', async () => {
    await api.call('POST', `/v1/sandboxes/${sandbox.id}/files/mkdir`, { path: 'a/b', parents: true })
    const terminal = await create({ cwd: 'a' })
    const cwdOf = async (more: object) => (await run(terminal, { command: 'pwd', ...more })).stdout.trim()
    assert.equal(await cwdOf({}), `${sandbox.workdir}/a`)
    assert.equal(await cwdOf({ cwd: 'b' }), `${sandbox.workdir}/a/b`)
    assert.equal(await cwdOf({ cwd: '/' }), '/')
    await destroy(terminal)
  })

  it('are a shell of the chosen size and program with pty', async () => {
    const terminal = await create({ pty: true, shell: 'sh', cols: 100, rows: 30, encoding: 'base64' })
    assert.deepEqual([terminal.status, terminal.encoding], ['running', 'base64'])
    const client = await attach(terminal)
    client.socket.send(Buffer.from('stty size; echo "<$0>"\n'))
    await until(() => client.text(1).includes('<sh>'))
    assert.match(client.text(1), /30 100/)
    await destroy(terminal)
    assert.equal(await client.exitCode(), 137)
  })

  it('list a pty until its shell ends, and know it until it is destroyed', async () => {
    // The login shell, with an empty home instead of this machine's.
    const terminal = await create({ pty: true, env: { HOME: sandbox.workdir } })
    assert.deepEqual(await list(), [terminal])
    const client = await attach(terminal)
    client.socket.send(Buffer.from('exit 5\n'))
    assert.equal(await client.exitCode(), 5)
    assert.deepEqual(await list(), [])
    assert.deepEqual(await get(terminal), { ...terminal, status: 'stopped' })
    assert.equal((await destroy(terminal)).status, 204)
    assert.equal((await errorOf(await destroy(terminal))).code, 'terminal_not_found')
  })

  it('end what runs in them when they are destroyed', async () => {
    const terminal = await create()
    const job = await run(terminal, { command: 'sleep 600', background: true })
    await destroy(terminal)
    const { jobStatus, terminalId } = await api.process(sandbox.id, job.id)
    assert.deepEqual([jobStatus, terminalId], ['cancelled', terminal.id])
    const late = await api.call('POST', `${terminals}/${terminal.id}/commands`, { command: 'true' })
    assert.equal((await errorOf(late)).code, 'terminal_not_found')
  })

  it('kill a command in the foreground whose caller went away', async () => {
    const terminal = await create()
    const gate = makeGate(sandbox, 'caller')
    const abort = new AbortController()
    const path = `${terminals}/${terminal.id}/commands`
    const body = { command: 'echo > caller; sleep 600' }
    const call = api.call('POST', path, body, { signal: abort.signal })
    await gate.passed()
    abort.abort()
    await assert.rejects(call, { name: 'AbortError' })
    await until(async () => {
      const { commands } = (await (await api.call('GET', path)).json()) as { commands: TerminalCommandInfo[] }
      return commands[0]?.exitCode === 137
    })
    await destroy(terminal)
  })

  it('say what is wrong', async () => {
    const pty = await create({ pty: true, shell: '/bin/sh' })
    const plain = await create()
    const other = await run(await create(), { command: 'true' })
    const cases: [string, string, object | undefined, string][] = [
      ['POST', terminals, { shell: '/bin/sh' }, 'bad_request'],
      ['POST', terminals, { pty: true, shell: 'no-such-shell' }, 'command_not_found'],
      ['POST', terminals, { pty: true, cwd: 'nowhere' }, 'cwd_not_found'],
      ['POST', `${terminals}/${pty.id}/commands`, { command: 'true' }, 'invalid_state'],
      ['POST', `${terminals}/${plain.id}/commands`, { command: '' }, 'bad_request'],
      ['GET', `${terminals}/${plain.id}/commands/${other.id}`, undefined, 'process_not_found'],
      ['GET', `${terminals}/${newId('terminal')}`, undefined, 'terminal_not_found'],
      ['GET', `${terminals}/nonsense`, undefined, 'terminal_not_found'],
      ['GET', `/v1/sandboxes/${newId('sandbox')}/terminals`, undefined, 'sandbox_not_found'],
    ]
    for (const [method, path, body, code] of cases) {
      assert.equal((await errorOf(await api.call(method, path, body))).code, code, `${method} ${path}`)
    }
    // The two that could not start left nothing.
    assert.equal((await list()).length, 3)
    for (const terminal of await list()) await destroy(terminal)
  })

  it('are limited in number, but ended ones make room', async () => {
    const made = await api.createSandbox()
    const path = `/v1/sandboxes/${made.id}/terminals`
    const ended = await create({ pty: true, shell: '/bin/true' }, path)
    await until(async () => (await api.process(made.id, ended.processId!)).status === 'exited')
    for (let count = 1; count < LIMITS.terminals; count++) await create({}, path)
    await create({}, path)
    assert.equal((await errorOf(await api.call('GET', `${path}/${ended.id}`))).code, 'terminal_not_found')
    assert.equal((await errorOf(await api.call('POST', path, {}))).code, 'limit_exceeded')
    await api.call('DELETE', `/v1/sandboxes/${made.id}`)
    const left = (await (await api.call('GET', path)).json()) as { terminals: TerminalInfo[] }
    assert.deepEqual(left.terminals, [])
    assert.equal((await errorOf(await api.call('POST', path, {}))).code, 'invalid_state')
  })
})
