import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough, Readable, Writable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { makeGate } from '../../server/test/support/barrier.ts'
import { settled, startTestApi, TEST_KEY, type TestApi, until } from '../../server/test/support/server.ts'
import { hasCode, Islet, type Sandbox } from '../src/index.ts'

const apiKey = TEST_KEY
const MIB = 1024 * 1024
let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(() => api[Symbol.asyncDispose]())

const textOf = (data: Uint8Array) => new TextDecoder().decode(data)
const livingOf = async (islet: Islet) => (await islet.sandboxes.list()).total
const isAbort = (error: unknown) => error instanceof DOMException && error.name === 'AbortError'

for (const [name, fetch] of [
  ["Node's own HTTP client", undefined],
  ['fetch', globalThis.fetch],
] as const) {
  describe(`with ${name}`, () => {
    let islet: Islet
    let sandbox: Sandbox
    before(async () => {
      islet = new Islet({ url: api.url, apiKey, fetch })
      sandbox = await islet.sandboxes.create()
    })
    after(() => sandbox.kill())

    test('handlers get the output as it comes, and the result has it too', async () => {
      const gate = makeGate(await sandbox.getInfo(), `gate-${fetch?.name}`)
      const seen: string[] = []
      const first = Promise.withResolvers<void>()
      const running = sandbox.exec.run(`echo one; cat ${gate.path}; echo two >&2; exit 3`, {
        onStdout: (data) => {
          assert.ok(data instanceof Uint8Array)
          seen.push(`out ${textOf(data)}`)
          first.resolve()
        },
        onStderr: (data) => void seen.push(`err ${textOf(data)}`),
      })
      await first.promise
      await (await gate.reached()).open()
      const { stdout, stderr, exitCode, truncated, processId, ...more } = await running
      assert.deepEqual(seen, ['out one\n', 'err two\n'])
      assert.deepEqual([stdout, stderr, exitCode, truncated], ['one\n', 'two\n', 3, false])
      assert.ok(!('sandboxId' in more))
      assert.equal((await sandbox.exec.get(processId)).result?.exitCode, 3)
    })

    test('streams of Node and of the Web get the output and stay open', async () => {
      const node = new PassThrough()
      const got: string[] = []
      const web = new WritableStream<Uint8Array>({ write: (data) => void got.push(textOf(data)) })
      for (let times = 0; times < 2; times++) {
        const handled: string[] = []
        const onStdout = (data: Uint8Array) => void handled.push(textOf(data))
        const command = 'echo out; echo err >&2'
        const result = await sandbox.exec.run(command, { stdout: node, stderr: web, onStdout })
        assert.deepEqual([result.stdout, result.stderr, handled.join('')], ['out\n', 'err\n', 'out\n'])
      }
      assert.ok(!node.writableEnded && !node.destroyed && !web.locked)
      assert.equal(node.listenerCount('error'), new PassThrough().listenerCount('error'))
      assert.equal(String(node.read()), 'out\nout\n')
      assert.equal(got.join(''), 'err\nerr\n')
      const both = new PassThrough()
      await sandbox.exec.run('echo out; sleep 0.05; echo err >&2', { stdout: both, stderr: both })
      assert.equal(String(both.read()), 'out\nerr\n')
      const one: string[] = []
      const same = new WritableStream<Uint8Array>({ write: (data) => void one.push(textOf(data)) })
      await sandbox.exec.run('echo out; sleep 0.05; echo err >&2', { stdout: same, stderr: same })
      assert.equal(one.join(''), 'out\nerr\n')
    })

    test('the result has no more than maxOutputBytes, in the wanted encoding; handlers get all of it', async () => {
      let bytes = 0
      const onStdout = (data: Uint8Array) => {
        bytes += data.length
        data.fill(0)
      }
      const command = 'printf 12345678; echo err >&2'
      const cut = await sandbox.exec.run(command, { onStdout, maxOutputBytes: 5, encoding: 'base64' })
      assert.equal(bytes, 8)
      const kept = [cut.stdout, cut.stderr].map((text) => Buffer.from(text, 'base64').toString())
      assert.ok(kept.join('').length === 5 && (kept[0] === '12345' || kept[1] === 'err\n'), String(kept))
      assert.deepEqual([cut.truncated, cut.droppedBytes], [true, 7])
      for (const maxOutputBytes of [-1, 1.5, 65 * MIB])
        await assert.rejects(sandbox.exec.run('true', { onStdout, maxOutputBytes }), (error) =>
          hasCode(error, 'bad_request'),
        )
      const odd = sandbox.exec.run('true', { onStdout, encoding: 'hex' as 'utf8' })
      await assert.rejects(odd, (error) => hasCode(error, 'bad_request'))
      const raw: Uint8Array[] = []
      const binary = await sandbox.exec.run(String.raw`printf '\377\000\303\251\357\273\277'`, {
        onStdout: (data) => void raw.push(data),
      })
      assert.equal(Buffer.concat(raw).toString('hex'), 'ff00c3a9efbbbf')
      assert.equal(binary.stdout, '\ufffd\0é\ufeff')
    })

    test('a slow handler or stream slows the command', async () => {
      const bytes = 96 * MIB
      const command = `head -c ${bytes} /dev/zero | tr '\\0' x`
      const gate = Promise.withResolvers<void>()
      const started = Promise.withResolvers<void>()
      let got = 0
      const slow = new WritableStream<Uint8Array>({
        write: async (data) => {
          got += data.length
          started.resolve()
          await gate.promise
        },
      })
      const running = sandbox.exec.run(command, { stdout: slow, maxOutputBytes: 0 })
      await started.promise
      const [{ id } = { id: '' }] = await sandbox.exec.list({ status: 'running' })
      const written = await settled(async () => (await sandbox.exec.get(id)).outputBytes)
      assert.ok(written < bytes / 2, `${written} bytes were printed`)
      gate.resolve()
      assert.equal((await running).droppedBytes, bytes)
      assert.equal(got, bytes)
    })

    test('stdin may be any stream or iterable', async () => {
      const large = Buffer.alloc(3 * MIB, 'abc')
      const chunks = async function* () {
        yield 'one '
        yield new TextEncoder().encode('two')
      }
      for (const [stdin, expected] of [
        [Readable.from(['one ', Buffer.from('two')]), 'one two'],
        [new Blob(['one two']).stream(), 'one two'],
        [chunks(), 'one two'],
        [Readable.from([large]), String(large)],
        [new Blob([]).stream(), ''],
        ['one two', 'one two'],
        [new TextEncoder().encode('one two'), 'one two'],
      ] as const) {
        const { stdout } = await sandbox.exec.run('cat', { stdin })
        assert.ok(stdout === expected, `${stdout.length} of ${expected.length}`)
        const handled: string[] = []
        if (typeof stdin !== 'string') continue
        await sandbox.exec.run('cat', { stdin, onStdout: (data) => void handled.push(textOf(data)) })
        assert.equal(handled.join(''), expected)
      }
      const ended = Readable.from([])
      ended.resume()
      await once(ended, 'end')
      assert.equal((await sandbox.exec.run('cat', { stdin: ended })).exitCode, 0)
      const locked = new Blob(['x']).stream()
      locked.getReader()
      for (const stdin of [5, {}, [], locked, Readable.from([7])]) {
        const refused = sandbox.exec.run('cat', { stdin: stdin as unknown as string })
        await assert.rejects(refused, (error) => hasCode(error, 'bad_request'))
      }
    })

    test('a command need not read its stdin: the source is told, or left as it was', async () => {
      let isReturned = false
      const endless = (async function* () {
        try {
          for (;;) yield 'more\n'
        } finally {
          isReturned = true
        }
      })()
      assert.equal((await sandbox.exec.run('head -n 1', { stdin: endless })).stdout, 'more\n')
      await until(() => isReturned)
      let isCancelled = false
      const web = new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array(10)),
        cancel: () => {
          isCancelled = true
        },
      })
      await sandbox.exec.run('true', { stdin: web })
      await until(() => isCancelled)
      const silent = new PassThrough()
      assert.equal((await sandbox.exec.run('echo done', { stdin: silent })).stdout, 'done\n')
      assert.ok(!silent.destroyed)
      assert.equal(
        silent.listenerCount('data') + silent.listenerCount('end'),
        new PassThrough().listenerCount('end'),
      )
    })

    test('an error of a handler, a stream or a source kills the command and is what the call rejects with', async () => {
      const wrong = new Error('disk full')
      const throws = () => {
        throw wrong
      }
      const failing = () => new Writable({ write: (_data, _encoding, done) => done(wrong) })
      const broken = new WritableStream<Uint8Array>({ write: throws })
      const breaking = () => {
        const stream = new PassThrough()
        setTimeout(() => stream.destroy(wrong), 100)
        return stream
      }
      const source = (async function* () {
        yield 'some'
        throw wrong
      })()
      const broke = new PassThrough()
      broke.on('error', () => {})
      broke.destroy(wrong)
      for (const options of [
        () => ({ onStdout: throws }),
        () => ({ onStdout: () => Promise.reject(wrong) }),
        () => ({ stdout: failing() }),
        () => ({ stdout: broken }),
        () => ({ stderr: breaking() }),
        () => ({ stdin: source }),
        () => ({ stdin: breaking() }),
        () => ({ stdin: broke }),
      ]) {
        const running = sandbox.exec.run('echo out; sleep 600', options())
        await assert.rejects(running, (error) => error === wrong, String(options))
      }
      await until(async () => (await sandbox.exec.list({ status: 'running' })).length === 0)
      const locked = new WritableStream<Uint8Array>()
      locked.getWriter()
      const refused = sandbox.exec.run('true', { stdout: new PassThrough(), stderr: locked })
      await assert.rejects(refused, (error) => hasCode(error, 'bad_request'))
      const odd = sandbox.exec.run('true', { stdout: {} as WritableStream<Uint8Array> })
      await assert.rejects(odd, (error) => hasCode(error, 'bad_request'))
      const missing = sandbox.exec.run(['nothing-of-that-name'], { onStdout() {} })
      await assert.rejects(missing, (error) => hasCode(error, 'command_not_found'))
    })

    test('aborting rejects with an AbortError and kills the command, whatever it waits for', async () => {
      const stuck = new Writable({ write: () => {}, highWaterMark: 1 })
      for (const [command, options] of [
        ['sleep 600', { stdout: new PassThrough() }],
        ['exec yes', { stdout: stuck }],
        ['exec yes', { onStdout: () => new Promise<void>(() => {}) }],
        ['cat', { stdin: new PassThrough() }],
      ] as const) {
        const controller = new AbortController()
        const running = sandbox.exec.run(command, { ...options, signal: controller.signal })
        await until(async () => (await sandbox.exec.list({ status: 'running' })).length === 1)
        controller.abort(new Error('enough'))
        await assert.rejects(running, isAbort)
        await until(async () => (await sandbox.exec.list({ status: 'running' })).length === 0)
      }
      const before = sandbox.exec.run('touch never', { onStdout() {}, signal: AbortSignal.abort() })
      await assert.rejects(before, isAbort)
      assert.equal(await sandbox.files.exists('never'), false)
    })

    test('a one-shot command streams, takes streams, and leaves no sandbox', async () => {
      const others = await livingOf(islet)
      const out = new PassThrough()
      const result = await islet.run('cat; echo "$ISLET_SANDBOX_ID"; echo oops >&2; exit 4', {
        stdin: Readable.from(['in ']),
        stdout: out,
        env: { ANY: '1' },
      })
      const { sandboxId, exitCode, stdout, stderr, processId } = result
      assert.deepEqual([exitCode, stdout, stderr], [4, `in ${sandboxId}\n`, 'oops\n'])
      assert.equal(String(out.read()), stdout)
      assert.equal(await livingOf(islet), others)
      const gone = await islet.sandboxes.connect(sandboxId)
      assert.equal((await gone.exec.get(processId)).result?.exitCode, 4)
      const url = await gone.exec.streamUrl(processId, { channel: 'stdout', expiresIn: '10m' })
      assert.equal(await (await globalThis.fetch(url)).text(), stdout)
      const events = await (await globalThis.fetch(await gone.events.streamUrl({ expiresIn: '1h' }))).text()
      assert.match(events, /"type":"stopped"/)
    })

    test('an aborted one-shot command leaves no sandbox, whenever it is aborted', async () => {
      const others = await livingOf(islet)
      for (const options of [{ onStdout() {} }, {}]) {
        for (const ms of [0, 2, 5, 10, 50]) {
          const controller = new AbortController()
          const running = islet.run('sleep 600', { ...options, signal: controller.signal })
          setTimeout(() => controller.abort(), ms)
          await assert.rejects(running, isAbort)
        }
      }
      await until(async () => (await livingOf(islet)) === others)
      assert.equal(await settled(() => livingOf(islet)), others)
    })
  })
}

test('a program that passes its own stdin and stdout ends by itself, and both stay open', async () => {
  const source = `
    const { Islet } = await import('${new URL('../src/index.ts', import.meta.url)}')
    const islet = new Islet({ url: '${api.url}', apiKey: '${apiKey}' })
    const { stdout, stdin } = process
    const { exitCode } = await islet.run('head -n 1; exit 7', { stdout, stdin })
    stdout.write('still open ' + exitCode + ' ' + stdin.destroyed + '\\n')
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.write('first line\nsecond\n')
  let printed = ''
  child.stdout.on('data', (data) => {
    printed += data
  })
  // Its stdin stays open, and nothing more comes.
  const [code] = (await once(child, 'close')) as [number]
  assert.deepEqual([printed, code], ['first line\nstill open 7 false\n', 0])
})

test('a proxy that cuts the answer off is a broken connection, not an end', async () => {
  const islet = new Islet({ url: api.url, apiKey, fetch: cutting, retries: 0 })
  const sandbox = await islet.sandboxes.create()
  const running = sandbox.exec.run('echo out; echo more', { onStdout() {} })
  await assert.rejects(running, (error) => hasCode(error, 'bad_response'))
  await sandbox.kill()
})

/** Gives only the first chunk of an answer with lines. */
const cutting: typeof globalThis.fetch = async (input, init) => {
  const response = await globalThis.fetch(input, init)
  if (response.headers.get('content-type') !== 'application/x-ndjson') return response
  const reader = response.body!.getReader()
  const { value } = await reader.read()
  await reader.cancel()
  const start = textOf(value!).split('\n')[0]
  return new Response(`${start}\n`, { headers: response.headers })
}
