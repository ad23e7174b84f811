// Agent sessions with the real Claude Agent SDK, against a model of our own that listens in the sandbox.
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { claudeInside, hasCode } from 'islet'
import { outcomeOf, printed } from '../support/children.ts'
import { claudePackage, giveClaude, MODEL_ENV, Seen, startModel } from '../support/claude.ts'
import { giveNode } from '../support/node-inside.ts'
import { ISLET, root } from '../support/server.ts'
import { startSuite } from '../support/suite.ts'

const found = await claudePackage()
const skip = 'missing' in found ? found.missing : false
const modules = 'modules' in found ? found.modules : ''
const suite = await startSuite()
const sandbox = await suite.create({ env: MODEL_ENV, resources: { memory: '3Gi' } })
if (!skip) {
  await giveClaude(sandbox, modules)
  await startModel(sandbox)
}

const sdkUrl = pathToFileURL(join(modules, '@anthropic-ai/claude-agent-sdk/sdk.mjs')).href
const call = (tool: string, input: object): string => `call ${tool} ${JSON.stringify(input)}`
/** Runs in a turn until the test makes the file. */
const waitFor = (file: string): string =>
  call('Bash', { command: `until [ -e ${file} ]; do sleep 0.1; done; echo went`, description: 'waits' })

test('a session answers, later prompts continue the conversation, and it ends when it is killed', {
  skip,
}, async () => {
  const seen = new Seen()
  const session = await sandbox.agent.start({ prompt: 'say hello', ...seen.handlers })
  assert.equal(await seen.answer(), 'hello')
  await session.sendPrompt('history')
  assert.deepEqual(JSON.parse((await seen.answer())!), ['say hello', 'history'])
  assert.equal(seen.types()[0], 'ready')
  assert.equal(seen.events.at(-1)?.claude_session_id, session.claudeSessionId)
  const [info] = await sandbox.agent.list()
  const { startedAt, ...rest } = info!
  assert.ok(Date.parse(startedAt) <= Date.now())
  assert.deepEqual(rest, {
    sessionId: session.sessionId,
    sandboxId: sandbox.id,
    running: true,
    endedAt: null,
    exitCode: null,
    claudeSessionId: session.claudeSessionId,
  })
  await session.kill()
  assert.equal(await session.done, 137)
  assert.equal(seen.exitCode, 137)
  const ended = await sandbox.agent.get(session.sessionId)
  assert.deepEqual([ended.running, ended.exitCode], [false, 137])
  await assert.rejects(session.sendPrompt('say more'), (error) => hasCode(error, 'invalid_state'))
  assert.equal((await sandbox.runCommand('ls -A /tmp')).stdout.includes('islet'), false)
})

test('the agent uses tools: it writes files and runs commands, as the user of the sandbox', {
  skip,
}, async () => {
  const seen = new Seen()
  const { workdir, user } = await sandbox.getInfo()
  await sandbox.files.makeDir('project')
  const session = await sandbox.agent.start({
    cwd: 'project',
    prompt: call('Write', { file_path: `${workdir}/project/note.txt`, content: 'Grüße\n' }),
    ...seen.handlers,
  })
  assert.match((await seen.answer())!, /^result: /)
  assert.equal(await sandbox.files.read('project/note.txt'), 'Grüße\n')
  const change = { file_path: 'note.txt', old_string: 'Grüße', new_string: '你好' }
  await session.sendPrompt(call('Edit', { ...change, file_path: `${workdir}/project/note.txt` }))
  assert.match((await seen.answer())!, /updated/)
  assert.equal(await sandbox.files.read('project/note.txt'), '你好\n')
  await session.sendPrompt(call('Bash', { command: 'id -un; pwd; cat note.txt', description: 'looks' }))
  assert.equal(await seen.answer(), `result: ${user}\n${workdir}/project\n你好`)
  await session.kill()
})

test('an interrupt ends the turn at once, whatever it does, and the session goes on', { skip }, async () => {
  const seen = new Seen()
  const session = await sandbox.agent.start({ prompt: 'hang', ...seen.handlers })
  await seen.next('system')
  await session.interrupt()
  await seen.next('interrupted')
  await session.sendPrompt(waitFor('never'))
  await seen.next('assistant')
  await session.interrupt()
  await seen.next('interrupted')
  // Before the turn has begun, and when there is none.
  await session.sendPrompt('hang')
  await session.interrupt()
  await seen.next('interrupted')
  await session.interrupt()
  await seen.next('interrupted')
  await session.sendPrompt('say still here')
  assert.equal(await seen.answer(), 'still here')
  assert.equal(seen.types().filter((type) => type === 'turn_complete').length, 1)
  await session.kill()
})

test('the configuration can be given at start and changed later, and holds from the next turn on', {
  skip,
}, async () => {
  const seen = new Seen()
  const session = await sandbox.agent.start({
    model: 'model-one',
    systemPrompt: 'You are one.',
    allowedTools: ['Read', 'Bash(id *)'],
    maxTurns: 2,
    prompt: 'request',
    ...seen.handlers,
  })
  await seen.next('configured')
  const one = JSON.parse((await seen.answer())!)
  assert.equal(one.model, 'model-one')
  assert.match(one.system, /You are one\.$/)
  assert.equal(one.key, MODEL_ENV.ANTHROPIC_API_KEY)
  assert.ok(
    one.tools.includes('Read') && one.tools.includes('Bash') && !one.tools.includes('Write'),
    one.tools,
  )
  await session.sendPrompt(call('Bash', { command: 'id -u', description: 'allowed' }))
  assert.match((await seen.answer())!, /^result: \d+$/)
  await session.sendPrompt(call('Bash', { command: 'touch denied', description: 'not allowed' }))
  await seen.answer()
  assert.equal(await sandbox.files.exists('denied'), false)
  await session.sendPrompt('loop')
  assert.equal((await seen.next('result')).subtype, 'error_max_turns')
  await seen.next('turn_complete')

  await session.configure({ model: 'model-two', systemPrompt: 'You are two.' })
  await session.sendPrompt('request')
  const two = JSON.parse((await seen.answer())!)
  assert.deepEqual([two.model, /You are two\.$/.test(two.system)], ['model-two', true])
  assert.equal(two.tools.includes('Write'), false, 'what was not changed stays')
  await session.sendPrompt('history')
  assert.equal(JSON.parse((await seen.answer())!)[0], 'request', 'the conversation continues')
  await session.configure({ cwd: 'nowhere' })
  assert.match(String((await seen.next('error')).message), /There is no directory .*\/nowhere/)
  await session.kill()
})

test('a new session resumes a conversation, also in a fork; one that does not exist begins anew', {
  skip,
}, async () => {
  const first = new Seen()
  const session = await sandbox.agent.start({ prompt: 'say it once', ...first.handlers })
  await first.answer()
  const { claudeSessionId } = session
  await session.kill()
  const second = new Seen()
  const resumed = await sandbox.agent.start({
    resume: claudeSessionId,
    prompt: 'history',
    ...second.handlers,
  })
  assert.deepEqual(JSON.parse((await second.answer())!), ['say it once', 'history'])
  assert.equal(resumed.claudeSessionId, claudeSessionId)
  await resumed.sendPrompt('history', crypto.randomUUID())
  assert.deepEqual(JSON.parse((await second.answer())!), ['history'])
  assert.notEqual(resumed.claudeSessionId, claudeSessionId)
  assert.match(second.errors, /No conversation found/)
  await resumed.kill()
  await using fork = await sandbox.fork()
  await startModel(fork)
  const third = new Seen()
  await fork.agent.start({ resume: claudeSessionId, prompt: 'history', ...third.handlers })
  assert.deepEqual(JSON.parse((await third.answer())!), ['say it once', 'history', 'history'])
})

test('a session outlives its clients and the server; whoever attaches gets all of it', { skip }, async () => {
  const [one, two, three] = [new Seen(), new Seen(), new Seen()]
  const session = await sandbox.agent.start({ prompt: 'say begun', ...one.handlers })
  await one.answer()
  const second = await suite.server.islet().sandboxes.connect(sandbox.id)
  const other = await second.agent.attach(session.sessionId, two.handlers)
  assert.equal(await two.answer(), 'begun')
  await other.sendPrompt(waitFor('go'))
  await one.next('assistant')
  other.close()
  await suite.server.kill()
  await suite.server.start()
  await sandbox.files.write('go', '')
  assert.equal(await one.answer(), 'result: went')
  const third = await sandbox.agent.attach(session.sessionId, three.handlers)
  assert.deepEqual([await three.answer(), await three.answer()], ['begun', 'result: went'])
  assert.deepEqual(three.events, one.events)
  const replayed = three.events.length
  await sandbox.hibernate()
  await third.sendPrompt('history')
  assert.equal(JSON.parse((await one.answer())!).length, 3)
  await three.answer()
  assert.equal(three.scrollback, replayed)
  await session.kill()
  assert.deepEqual([await session.done, await third.done], [137, 137])
})

test('MCP servers serve the agent; their variables, and prompts, are in no argument of a process', {
  skip,
}, async () => {
  const seen = new Seen()
  await sandbox.files.write('notes.mjs', readFileSync(join(root, 'tests/support/mcp-server.js'), 'utf8'))
  const notes = { command: 'node', args: ['notes.mjs'], env: { NOTES_TOKEN: 'a-secret-token' } }
  const session = await sandbox.agent.start({ mcpServers: { notes }, ...seen.handlers })
  await session.sendPrompt(call('mcp__notes__token', { before: 'it is' }))
  assert.equal(await seen.answer(), 'result: it is a-secret-token')
  const { stdout } = await sandbox.runCommand("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
  assert.match(stdout, /claude --output-format/)
  assert.doesNotMatch(stdout, /a-secret-token|it is|key-of-the-test/)
  const { command } = await sandbox.exec.get(session.sessionId)
  assert.doesNotMatch(JSON.stringify(command), /secret|it is|key-of/)
  assert.doesNotMatch(suite.server.output, /a-secret-token|it is|key-of-the-test/)
  await session.kill()
})

test('without an API key a session says so and ends; without node or the package it does not begin', {
  skip,
}, async () => {
  const seen = new Seen()
  const env = { ANTHROPIC_API_KEY: '' }
  const session = await sandbox.agent.start({ prompt: 'say hello', env, ...seen.handlers })
  assert.equal(await session.done, 1)
  const [event, ...more] = seen.events
  assert.deepEqual([event?.type, event?.code, more], ['error', 'no_api_key', []])
  assert.match(String(event?.message), /ANTHROPIC_API_KEY/)
  await using bare = await suite.create({ env: { PATH: '/usr/local/bin:/usr/bin:/bin' } })
  if ((await bare.runCommand('command -v node')).exitCode !== 0) {
    await assert.rejects(bare.agent.start(), hasNo(/no node/))
    await giveNode(bare)
  }
  await assert.rejects(bare.agent.start({ prompt: 'say hello' }), hasNo(/no Claude Agent SDK/))
  assert.deepEqual(await bare.agent.list(), [])
  assert.equal((await bare.runCommand('ls -A /tmp')).stdout.includes('islet'), false)
})

test('a session can end with its clients, or after a time', { skip }, async () => {
  const abandoned = await sandbox.agent.start({ maxRunAfterDisconnect: 0 })
  abandoned.close()
  while ((await sandbox.agent.get(abandoned.sessionId)).running) await sleep(50)
  const timed = await sandbox.agent.start({ timeout: '2s' })
  assert.equal(await timed.done, 124)
})

test('sessions that do not exist, and options with wrong values, are refused', async () => {
  const { id } = await sandbox.exec.spawn('sleep 60')
  for (const sessionId of [id, 'prc-none', 'prc-00000000000000000000'])
    await assert.rejects(sandbox.agent.attach(sessionId), (error) => hasCode(error, 'process_not_found'))
  await sandbox.exec.kill(id)
  const wrong: object[] = [
    { prompt: '' },
    { prompt: 'x'.repeat(1024 * 1024 + 1) },
    { maxTurns: 0 },
    { maxTurns: 1.5 },
    { permissionMode: 'ask' },
    { resume: '--help' },
    { allowedTools: 'Read' },
    { mcpServers: { 'a b': { command: 'x' } } },
    { mcpServers: { a: { type: 'http', url: 'file:///etc/passwd' } } },
    { mcpServers: { a: { args: [] } } },
    { maxturns: 1 },
  ]
  for (const options of wrong)
    await assert.rejects(
      sandbox.agent.start(options),
      (error) => hasCode(error, 'bad_request'),
      JSON.stringify(options).slice(0, 80),
    )
  assert.deepEqual(
    (await sandbox.agent.list()).filter(({ running }) => running),
    [],
  )
})

test('a host program drives the Agent SDK while Claude Code runs in the sandbox', { skip }, async () => {
  const { query } = await import(sdkUrl)
  let stderr = ''
  const spawnClaudeCodeProcess = claudeInside(sandbox, { onStderr: (text) => (stderr += text) })
  const ask = async (prompt: string, options: object = {}) => {
    const messages = []
    const all = {
      spawnClaudeCodeProcess,
      permissionMode: 'bypassPermissions',
      allowDangerouslySkipPermissions: true,
    }
    for await (const message of query({ prompt, options: { ...all, ...options } })) messages.push(message)
    return messages.at(-1).result
  }
  const who = call('Bash', { command: 'hostname; echo $HOST_SECRET', description: 'looks' })
  process.env.HOST_SECRET = 'of the host'
  try {
    assert.equal(await ask(who), `result: ${(await sandbox.runCommand('hostname')).stdout.trim()}`)
  } finally {
    delete process.env.HOST_SECRET
  }
  const env = { GIVEN: 'yes' }
  assert.equal(
    await ask(call('Bash', { command: 'echo $GIVEN', description: 'looks' }), { env }),
    'result: yes',
  )
  await assert.rejects(ask('say x', { resume: crypto.randomUUID() }), /No conversation found/)
  assert.match(stderr, /No conversation found/)
  const abortController = new AbortController()
  const hanging = ask('hang', { abortController })
  abortController.abort()
  await assert.rejects(hanging, /abort/i)
})

test('islet agent prints what the agent says, is interrupted by Ctrl-C, and shows sessions that go on', {
  skip,
}, async () => {
  const said = await run('agent', sandbox.id, call('Bash', { command: 'echo done', description: 'works' }))
  assert.deepEqual([said.code, said.stdout], [0, 'result: done\n'])
  assert.match(said.stderr, /^> Bash \{"command":"echo done"/m)
  const hanging = cli('agent', '--json', sandbox.id, 'hang')
  await printed(hanging, '"subtype":"init"')
  hanging.kill('SIGINT')
  assert.deepEqual(await once(hanging, 'close'), [130, null])

  const detached = await run('agent', '--detach', sandbox.id, 'say in the background')
  const id = detached.stdout.trim()
  const attached = cli('agent', 'attach', sandbox.id, id)
  await printed(attached, 'in the background')
  attached.kill('SIGINT')
  await once(attached, 'close')
  assert.match((await run('agent', 'ls', sandbox.id)).stdout, new RegExp(`${id} +running`))
  await sandbox.exec.kill(id)

  const keyless = await run('agent', '--env', 'ANTHROPIC_API_KEY=', sandbox.id, 'say hello')
  assert.equal(keyless.code, 1)
  assert.match(keyless.stderr, /^islet: There is no API key/m)
})

test('the examples of the guide run', { skip }, async () => {
  const page = readFileSync(join(root, 'docs/guide/agents.md'), 'utf8')
  const examples = [...page.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code]) => code!)
  const outputs = []
  for (const code of examples) {
    const here = code
      .replace(/await using sandbox = .*/, `const sandbox = await Sandbox.connect('${sandbox.id}')`)
      .replace("'@anthropic-ai/claude-agent-sdk'", `'${sdkUrl}'`)
    const program = spawn(process.execPath, ['--input-type=module-typescript', '--eval', here], {
      cwd: root,
      env: suite.server.clientEnv,
    })
    outputs.push(await outcomeOf(program))
  }
  // Our model says all words of a prompt but the first.
  const said = ['a haiku about islands to haiku.txt.\nexit code 137\n', 'Linux is this?\n']
  assert.deepEqual(
    outputs.map(({ code, stdout }) => [code, stdout]),
    said.map((text) => [0, text]),
  )
})

test('no process of an agent is left', { skip }, async () => {
  const running = async () => (await sandbox.exec.list({ status: 'running' })).map(({ command }) => command)
  while ((await running()).length > 1) await sleep(50)
  assert.match(String(await running()), /model/)
})

const hasNo = (what: RegExp) => (error: unknown) => {
  assert.match((error as Error).message, what)
  assert.match((error as { hint: string }).hint, /runtime claude/)
  return hasCode(error, 'interpreter_not_found')
}

function cli(...words: string[]): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [ISLET, ...words], { env: suite.server.clientEnv })
}

const run = (...words: string[]) => outcomeOf(cli(...words))
