import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { GUEST_BINARY } from './harness.ts'

describe('islet-signal', () => {
  let dir: string
  let server: Server
  let requests: { incoming: IncomingMessage; body: string }[] = []
  let answer = { status: 204, body: '' }
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'islet-signal-'))
    copyFileSync(GUEST_BINARY, join(dir, 'islet-signal'))
    server = createServer(async (incoming, outgoing) => {
      let body = ''
      incoming.setEncoding('utf8')
      for await (const chunk of incoming) body += chunk
      requests.push({ incoming, body })
      outgoing.writeHead(answer.status).end(answer.body)
    })
    await new Promise<void>((done) => server.listen(join(dir, 'inside.sock'), done))
  })
  after(async () => {
    await new Promise((done) => server.close(done))
    rmSync(dir, { recursive: true })
  })

  const run = async (...args: (string | Buffer)[]) => {
    requests = []
    const child = spawn(join(dir, 'islet-signal'), args as string[], { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    child.stdout.on('data', (bytes) => {
      output += bytes
    })
    child.stderr.on('data', (bytes) => {
      output += bytes
    })
    const [code] = await once(child, 'close')
    return { code: code as number, output }
  }
  /** What arrives when these words are accepted. */
  const sent = async (...args: string[]) => {
    assert.deepEqual(await run(...args), { code: 0, output: '' })
    const [request] = requests
    assert.equal(`${request!.incoming.method} ${request!.incoming.url}`, 'POST /v1/signals')
    assert.equal(request!.incoming.headers['content-type'], 'application/json')
    return JSON.parse(request!.body)
  }

  test('posts each kind of signal as JSON', async () => {
    const url = 'http://localhost:3000/?a="b"'
    assert.deepEqual(await sent('port', '3000', 'open', url), {
      signal: 'port',
      port: 3000,
      type: 'open',
      url,
    })
    assert.deepEqual(await sent('port', '03000', 'close'), {
      signal: 'port',
      port: 3000,
      type: 'close',
      url: 'http://127.0.0.1:3000',
    })
    assert.deepEqual(await sent('server-ready', '8080', url), { signal: 'server-ready', port: 8080, url })
    assert.deepEqual(await sent('error', 'it', 'broke'), { signal: 'error', message: 'it broke' })
    assert.deepEqual(await sent('build.done'), { signal: 'build.done' })
    assert.deepEqual(await sent('build.done', '{"files": [1, null]}'), {
      signal: 'build.done',
      data: { files: [1, null] },
    })
  })

  test('escapes whatever a message holds', async () => {
    const message =
      'quote " backslash \\ newline \n tab \t bell \u0007 delete \u007f ümläut 日本 🎉 </script>'
    assert.deepEqual(await sent('error', message), { signal: 'error', message })
  })

  test('sends text that is not UTF-8 as text that is', async () => {
    // Node's spawn takes text only, so a shell makes the bytes.
    const script = '"$0" error "$(printf \'a\\377b\\303\\251\\355\\240\\200\\300\\257\\360\\237\')"'
    requests = []
    const child = spawn('/bin/sh', ['-c', script, join(dir, 'islet-signal')], { stdio: 'inherit' })
    assert.deepEqual(await once(child, 'close'), [0, null])
    const { message } = JSON.parse(requests[0]!.body)
    assert.match(message, /^a\ufffdb\u00e9\ufffd+$/)
  })

  test('sends a long message whole, and refuses one that is too long for anybody', async () => {
    const long = 'é'.repeat(32 * 1024)
    assert.deepEqual(await sent('error', long), { signal: 'error', message: long })
    const words = Array.from({ length: 8 }, () => '\u0001'.repeat(100_000))
    const { code, output } = await run('error', ...words)
    assert.equal(code, 1)
    assert.match(output, /too long/)
    assert.equal(requests.length, 0)
  })

  test('cannot be made to send another signal by its data', async () => {
    assert.deepEqual(await sent('mine', '1, "signal": "port"'), { signal: 'mine', data: 1 })
  })

  test("prints the server's message when it is refused", async () => {
    answer = {
      status: 400,
      body: '{"error":{"code":"bad_request","message":"body.signal: \\"X\\" is\\nwrong"}}',
    }
    assert.deepEqual(await run('X'), { code: 1, output: 'islet-signal: body.signal: "X" is\nwrong\n' })
    answer = { status: 500, body: 'oops' }
    assert.equal((await run('x')).code, 1)
    answer = { status: 204, body: '' }
  })

  test('says how it is used', async () => {
    for (const words of [
      [],
      ['--help'],
      ['port'],
      ['port', '0', 'open'],
      ['port', '65536', 'open'],
      ['port', '3x', 'open'],
      ['port', '3000', 'ajar'],
      ['port', '3000', 'open', 'url', 'more'],
      ['server-ready'],
      ['server-ready', '-1'],
      ['error'],
      ['name', '{}', 'more'],
    ]) {
      const { code, output } = await run(...words)
      assert.equal(code, 2, words.join(' '))
      assert.match(output, /^usage: islet-signal port/)
    }
    assert.equal(requests.length, 0)
  })

  test('finds the socket through a symlink, and says when there is none', async () => {
    const other = mkdtempSync(join(tmpdir(), 'islet-signal-'))
    symlinkSync(join(dir, 'islet-signal'), join(other, 'islet-signal'))
    requests = []
    const linked = spawn(join(other, 'islet-signal'), ['linked'])
    assert.deepEqual(await once(linked, 'close'), [0, null])
    assert.equal(requests.length, 1)
    rmSync(join(other, 'islet-signal'))
    copyFileSync(GUEST_BINARY, join(other, 'islet-signal'))
    const alone = spawn(join(other, 'islet-signal'), ['alone'])
    let output = ''
    alone.stderr.on('data', (bytes) => {
      output += bytes
    })
    assert.deepEqual(await once(alone, 'close'), [1, null])
    assert.match(output, /cannot be reached: No such file/)
    rmSync(other, { recursive: true })
  })
})
