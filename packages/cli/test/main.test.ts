// Output, errors and exit codes of the command; exec, run and the other commands that are used most.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ERRORS, type ErrorSpec, type Pruned, type Sandbox } from '@islet/contract/client'
import { startProxy } from '../../sdk/test/proxy.ts'
import { startTestApi, type TestApi, until } from '../../server/test/support/server.ts'
import { hintFor } from '../src/hints.ts'
import { readable } from '../src/stdio/capture.ts'
import { islet } from './islet.ts'

let api: TestApi
let sandbox: Sandbox
before(async () => {
  api = await startTestApi()
  sandbox = await api.createSandbox({ name: 'first' })
})
after(() => api[Symbol.asyncDispose]())

const ids = async () => (await islet(['ls', '-q'], api)).stdout.split('\n').filter(Boolean).sort()

test('ls prints a table, ids with --quiet, and JSON with --json', async () => {
  const table = await islet(['ls'], api)
  assert.match(table.stdout, /^ID +NAME +STATUS.*\nsbx-\w+ +first +running /)
  assert.ok(!table.stdout.includes('\x1b'), 'no colours in a pipe')
  assert.equal((await islet(['ls', '-q'], api)).stdout, `${sandbox.id}\n`)
  const [listed] = JSON.parse((await islet(['ls', '--json'], api)).stdout) as Sandbox[]
  assert.deepEqual([listed?.id, listed?.name, listed?.status], [sandbox.id, 'first', 'running'])
})

test('an empty list prints nothing on stdout and a message on stderr', async () => {
  const { stdout, stderr, exitCode } = await islet(['ls', '--status', 'failed'], api)
  assert.equal(stdout, '')
  assert.match(stderr, /islet create/)
  assert.equal(exitCode, 0)
})

test('a failure ends with a hint and exit code 1; with --json it is JSON on stderr', async () => {
  const proxy = await startProxy(api.url)
  await proxy[Symbol.asyncDispose]()
  const { stdout, stderr, exitCode } = await islet(['ls'], proxy)
  assert.equal(stdout, '')
  assert.match(stderr, /^islet: No answer from .*\nhint: .*islet serve/)
  assert.equal(exitCode, 1)
  const json = await islet(['ls', '--json'], proxy)
  assert.equal(json.stdout, '')
  assert.equal(JSON.parse(json.stderr).error.code, 'connection_failed')
})

test('errors name variables, flags and groups, never HTTP headers', async () => {
  const wrongKey = await islet(['ls'], { ...api, env: { ISLET_API_KEY: 'islet_wrong' } })
  assert.equal(wrongKey.exitCode, 1)
  for (const named of ['ISLET_API_KEY', 'ISLET_DATA_DIR', 'usermod -aG islet']) {
    assert.ok(wrongKey.stderr.includes(named), `${named} in ${wrongKey.stderr}`)
  }
  assert.ok(!/Authorization|Bearer/.test(wrongKey.stderr), wrongKey.stderr)
  const noScheme = await islet(['ls'], { url: api.url.replace('http://', '') })
  assert.match(
    noScheme.stderr,
    /^islet: ISLET_URL is '127[^']*', which lacks http.*\nhint: Set ISLET_URL to http:/,
  )
  for (const [code, { hint }] of Object.entries<ErrorSpec>(ERRORS)) {
    assert.doesNotMatch(
      hintFor(code, hint),
      /(GET|POST|PUT|PATCH|DELETE) \/|Authorization|Content-Type/,
      code,
    )
  }
})

// src/app.test.ts has the other usage errors.
test('a usage error ends with a hint and exit code 2; with --json it is JSON on stderr', async () => {
  for (const words of [['frob'], ['cp', 'a', 'b']]) {
    const { exitCode, stdout, stderr } = await islet(words)
    assert.deepEqual([exitCode, stdout], [2, ''], words.join(' '))
    assert.match(stderr, /^islet: [\s\S]*\nhint: /)
  }
  const { stderr } = await islet(['run', '--json', '--memory', 'lots', 'true'])
  assert.equal(JSON.parse(stderr).error.code, 'usage')
})

test('--help prints to stdout and ends with exit code 0', async () => {
  const { stdout, stderr, exitCode } = await islet(['run', '--help'])
  assert.match(stdout, /Example:\n {2}islet run /)
  assert.deepEqual([stderr, exitCode], ['', 0])
})

test('exit code 125 is a failure of Islet, 126 a file that cannot be executed, 127 a missing command', async () => {
  assert.equal((await islet(['exec', '--cwd', '/none', 'first', '--', 'ls', '/'], api)).exitCode, 125)
  assert.equal((await islet(['exec', 'first', '--', 'no-such-program', '/'], api)).exitCode, 127)
  assert.equal((await islet(['exec', 'first', '--', '/etc/passwd', '/'], api)).exitCode, 126)
})

test('exec passes stdin, stdout, stderr and the exit code on', async () => {
  const words = ['exec', 'first', '--', 'sh', '-c', 'cat -; printf bye >&2; exit 3']
  const { stdout, stderr, exitCode } = await islet(words, { ...api, stdin: 'hello' })
  assert.deepEqual({ stdout, stderr, exitCode }, { stdout: 'hello', stderr: 'bye', exitCode: 3 })
})

test('options of the command need no --, one word is shell text, and --no-stdin passes no stdin', async () => {
  const bare = await islet(['exec', '-n', 'first', 'printf', '%s,', '-la', '--json', '-u', '--', 'x'], api)
  assert.equal(bare.stdout, '-la,--json,-u,--,x,')
  const separated = await islet(['exec', '-n', 'first', '--', 'printf', '%s,', '--user', '--', '-t'], api)
  assert.equal(separated.stdout, '--user,--,-t,')
  const shell = await islet(['exec', '-n', 'first', 'echo $((6 * 7)) | tr 4 5; wc -c'], {
    ...api,
    stdin: 'not this',
  })
  assert.equal(shell.stdout, '52\n0\n')
})

test('--json prints output as text, or as base64 if it is not UTF-8', async () => {
  const bytes = `printf 'h\\303\\251\\n'; printf '\\377\\000' >&2`
  const given = { stdout: 'hé\n', stderr: '/wA=', stdoutEncoding: 'utf8', stderrEncoding: 'base64' }
  const ran = await islet(['exec', '--json', '-n', 'first', bytes], api)
  const logged = await islet(['logs', '--json', 'first'], api)
  const coded = await islet(['code', '--json', 'first', '-l', 'shell'], { ...api, stdin: bytes })
  for (const { stdout, stderr } of [ran, logged, coded]) {
    assert.notEqual(stdout, '', stderr)
    assert.partialDeepStrictEqual(JSON.parse(stdout), given)
  }
  assert.equal(JSON.parse(coded.stdout).outputEncoding, 'base64')
  const once = await islet(['run', '--json', '-n', 'printf x'], api)
  assert.partialDeepStrictEqual(JSON.parse(once.stdout), { stdout: 'x', stdoutEncoding: 'utf8' })
  // A character that was cut in two does not make the output binary.
  const cut = readable({
    stdout: Buffer.from('aé').subarray(0, 2).toString('base64'),
    stderr: '',
    truncated: true,
  })
  assert.deepEqual([cut.stdout, cut.stdoutEncoding], ['a', 'utf8'])
})

test('-i and -t work in a terminal; without a terminal -t is refused', async () => {
  const typed = { ...api, terminal: true, stdin: 'hello\n' } as const
  const both = await islet(
    ['exec', '-it', 'first', '--', 'sh', '-c', 'test -t 0; read w; echo "$? $w"; exit 5'],
    typed,
  )
  assert.equal(both.exitCode, 5)
  assert.match(both.stdout, /^0 hello\r?$/m)
  const open = await islet(['exec', '-i', 'first', '--', 'sh', '-c', 'test -t 0; echo $?; head -n 1'], typed)
  assert.match(open.stdout, /^1\r?\n(.*\n)*hello\r?$/m)
  const once = await islet(['run', '-it', '--', 'sh', '-c', 'tty; exit 6'], { ...api, terminal: true })
  assert.deepEqual([once.exitCode, /dev\/pts/.test(once.stdout)], [6, true])
  const piped = await islet(['exec', '-i', 'first', 'wc -c'], { ...api, stdin: 'four' })
  assert.equal(piped.stdout, '4\n')
  const bare = await islet(['exec', '-it', 'first', 'true'], api)
  assert.equal(bare.exitCode, 2)
  assert.match(bare.stderr, /stdin is not a terminal\.\nhint: islet exec -i first -- COMMAND/)
})

test('--env NAME copies a variable, so that a secret is not in the command line', async () => {
  const words = ['create', '-e', 'TOKEN', '-e', 'A=b=c']
  const { stdout } = await islet(words, { ...api, env: { TOKEN: 's3cret' } })
  const printed = await islet(['exec', '-n', stdout.trim(), 'echo $TOKEN $A'], api)
  assert.equal(printed.stdout, 's3cret b=c\n')
  await islet(['rm', stdout.trim()], api)
})

test('run removes its sandbox', async () => {
  const { stdout, exitCode } = await islet(['run', 'echo once; exit 4'], api)
  assert.deepEqual([stdout, exitCode], ['once\n', 4])
  assert.deepEqual(await ids(), [sandbox.id])
})

test('cp copies from stdin and to stdout', async () => {
  assert.equal((await islet(['cp', '-', 'first:note'], { ...api, stdin: 'by hand' })).exitCode, 0)
  assert.equal((await islet(['cp', 'first:note', '-'], api)).stdout, 'by hand')
})

test('a detached command is listed, its output is kept, and it can be killed', async () => {
  const process = (await islet(['exec', '-d', 'first', 'echo begun; sleep 600'], api)).stdout.trim()
  assert.match((await islet(['ps', 'first'], api)).stdout, new RegExp(process))
  await until(async () => (await api.process(sandbox.id, process)).outputBytes > 0)
  assert.equal((await islet(['kill', 'first', process], api)).exitCode, 0)
  assert.equal((await islet(['logs', 'first', process], api)).stdout, 'begun\n')
  const chatty = ['exec', '-d', '--keep-output', '1Ki', 'first', 'seq 1 1000; echo end >&2']
  const id = (await islet(chatty, api)).stdout.trim()
  await until(async () => (await api.process(sandbox.id, id)).status === 'exited')
  const logs = await islet(['logs', 'first', id], api)
  assert.match(logs.stderr, /^islet: the first 2873 bytes of the output were dropped/)
  assert.match(logs.stdout, /999\n1000\n$/)
})

test('a unique prefix of its id names a sandbox', async () => {
  const other = await api.createSandbox()
  const ambiguous = await islet(['rm', 'sbx-'], api)
  assert.equal(ambiguous.exitCode, 2)
  assert.match(ambiguous.stderr, new RegExp(`2 sandboxes[\\s\\S]*${other.id}`))
  assert.match((await islet(['rm', 'ZZZ'], api)).stderr, /There is no sandbox ZZZ\.\nhint: islet ls/)
  assert.equal((await islet(['rm', other.id.slice('sbx-'.length, -3)], api)).stdout, `${other.id}\n`)
  assert.deepEqual(await ids(), [sandbox.id])
})

test('completion offers ids and names of sandboxes, and processes of a sandbox', async () => {
  const suggest = async (...words: string[]) =>
    (await islet(['__complete', '--', ...words], api)).stdout.split('\n').map((line) => line.split('\t')[0])
  assert.deepEqual(await suggest('exec', ''), [sandbox.id, 'first', ''])
  assert.deepEqual(await suggest('exec', '--user', 'root', 'fi'), ['first', ''])
  assert.deepEqual(await suggest('rm', 'first', 'sbx'), [sandbox.id, ''])
  const { id } = await api.start(sandbox.id, { command: 'true' })
  assert.ok((await suggest('logs', 'first', '')).includes(id))
})

test('prune shows what it would remove, asks in a terminal, and needs --yes in a pipe', async () => {
  const { id } = await api.createSandbox()
  await api.call('DELETE', `/v1/sandboxes/${id}`)
  const shown = await islet(['prune', '--dry-run'], api)
  assert.match(shown.stdout, new RegExp(`^KIND +SIZE +WHAT\\n[\\s\\S]*^record +- +${id}$`, 'm'))
  assert.match(shown.stderr, /would be freed\. Nothing was removed\.\n$/)
  const piped = await islet(['prune'], api)
  assert.deepEqual([piped.exitCode, /hint: islet prune --yes/.test(piped.stderr)], [2, true])
  const refused = await islet(['prune'], { ...api, terminal: true, stdin: 'n\n' })
  assert.match(refused.stdout, /Remove all this, and free about .*\? \[y\/N\] [\s\S]*Nothing was removed\./)
  const old = JSON.parse(
    (await islet(['prune', '--yes', '--json', '--older-than', '1d'], api)).stdout,
  ) as Pruned
  assert.deepEqual([old.dryRun, old.sandboxes], [false, []])
  const agreed = await islet(['prune'], { ...api, terminal: true, stdin: 'y\n' })
  assert.match(agreed.stdout, /About .* freed\./)
  const after = await islet(['prune', '--yes'], api)
  assert.deepEqual([after.stdout, after.exitCode], ['', 0])
  assert.equal((await api.call('GET', `/v1/sandboxes/${id}`)).status, 404)
})

test('rm --all asks, or needs --force', async () => {
  assert.equal((await islet(['rm', '--all'], api)).exitCode, 2)
  assert.equal((await islet(['rm', '--all', '--force'], api)).stdout, `${sandbox.id}\n`)
  assert.deepEqual(await ids(), [])
})

test('doctor --json reports the settings of this environment', async () => {
  const { stdout } = await islet(['doctor', '--json'], { env: { ISLET_HOST: '0.0.0.0' } })
  const { findings } = JSON.parse(stdout) as { findings: { name: string; detail: string }[] }
  assert.match(findings.find(({ name }) => name === 'exposure')!.detail, /0\.0\.0\.0 without TLS/)
})
