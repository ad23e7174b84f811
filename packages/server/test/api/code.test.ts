import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { codeResult, type ProcessInfo, type Sandbox } from '@islet/contract'
import { makeGate } from '../support/barrier.ts'
import { errorOf, startTestApi, type TestApi, until } from '../support/server.ts'

describe('code', () => {
  let api: TestApi
  let sandbox: Sandbox
  before(async () => {
    api = await startTestApi()
    // The Node that runs this is there for sure.
    const PATH = `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`
    sandbox = await api.createSandbox({ env: { GREETING: 'hello', PATH } })
  })
  after(() => api[Symbol.asyncDispose]())

  const postCode = (body: object, init?: RequestInit) =>
    api.call('POST', `/v1/sandboxes/${sandbox.id}/code`, body, init)
  const run = async (body: object) => {
    const response = await postCode(body)
    const text = await response.text()
    assert.equal(response.status, 200, text)
    return codeResult.parse(JSON.parse(text))
  }
  const newest = async () => {
    const list = await api.call('GET', `/v1/sandboxes/${sandbox.id}/processes?limit=1`)
    return ((await list.json()) as { processes: [ProcessInfo] }).processes[0]
  }
  const leftovers = () => readdirSync(sandbox.workdir).filter((name) => name.startsWith('.islet-'))
  const code = (lines: string) => ({ language: 'node', code: lines })

  it('runs in the language it is written in', async () => {
    const cases: [string, string, string][] = [
      ['import os\nprint(os.environ["GREETING"], 1 + 1)', 'python', 'hello 2\n'],
      ['console.log(process.env.GREETING, 1 + 1)', 'node', 'hello 2\n'],
      ['echo $GREETING $((1 + 1))', 'shell', 'hello 2\n'],
    ]
    for (const [text, language, output] of cases) {
      const result = await run({ code: text })
      assert.deepEqual([result.language, result.output, result.exitCode], [language, output, 0])
    }
    assert.deepEqual(leftovers(), [])
  })

  it('gives both channels apart and together, its exit code, and where it ran', async () => {
    const text =
      'import os, sys\nprint("one")\nprint("two", file=sys.stderr)\nprint(os.getcwd())\nsys.exit(3)'
    const result = await run({ code: text, language: 'python', env: { A: '1' } })
    assert.deepEqual(
      [result.stdout, result.stderr, result.exitCode],
      [`one\n${sandbox.workdir}\n`, 'two\n', 3],
    )
    assert.equal(result.output.length, result.stdout.length + result.stderr.length)
    const gates = [makeGate(sandbox, 'one'), makeGate(sandbox, 'two')]
    const order = run({ language: 'shell', code: 'echo 1; cat one; echo 2 >&2; cat two; echo 3' })
    for (const [index, gate] of gates.entries()) {
      const reached = await gate.reached()
      await until(async () => (await newest()).outputBytes === 2 * (index + 1))
      await reached.open()
    }
    assert.equal((await order).output, '1\n2\n3\n')
  })

  it('finds what lies beside it', async () => {
    writeFileSync(join(sandbox.workdir, 'helper.py'), 'value = 7\n')
    writeFileSync(join(sandbox.workdir, 'helper.cjs'), 'module.exports = 8\n')
    assert.equal((await run({ code: 'import helper\nprint(helper.value)' })).output, '7\n')
    assert.equal((await run(code("console.log(require('./helper.cjs'))"))).output, '8\n')
    assert.equal((await run(code("import h from './helper.cjs'\nconsole.log(h)"))).output, '8\n')
  })

  it('may be CommonJS, a module, or both, for Node', async () => {
    const cases: [string, string][] = [
      ["const os = require('os'); console.log(typeof os.cpus, typeof __filename)", 'function string\n'],
      ["import os from 'node:os'\nconsole.log(typeof os.cpus)", 'function\n'],
      ['const x = await Promise.resolve(4)\nconsole.log(x)', '4\n'],
      ['await (async () => console.log(5))()', '5\n'],
      [
        "const { join } = require('node:path')\nconsole.log(join('a', 'b'), await 6, typeof __dirname)",
        'a/b 6 string\n',
      ],
      ["import fs from 'fs'\nconst os = require('os')\nconsole.log(!!fs && !!os)", 'true\n'],
      ['const f = async () => { await 1; console.log(7) }\nf()', '7\n'],
      ["import('node:os').then(() => console.log(8))", '8\n'],
      ['#!/usr/bin/env node\nconsole.log(9)', '9\n'],
      ['console.log(import.meta.url.startsWith("file:"))', 'true\n'],
      ['with ({ a: 10 }) console.log(a)', '10\n'],
    ]
    for (const [text, output] of cases) {
      const result = await run(code(text))
      assert.equal(result.output, output, text)
    }
    const broken = await run(code('const = 1'))
    assert.equal(broken.exitCode, 1)
    assert.match(broken.stderr, /SyntaxError/)
    assert.deepEqual(leftovers(), [])
  })

  it('may be TypeScript, in any of its forms, for a Node that runs it', async () => {
    const helper = join(sandbox.workdir, 'helper.ts')
    writeFileSync(helper, 'export interface Pair { a: number }\nexport const pair: Pair = { a: 3 }\n')
    const cases: [string, string][] = [
      ['const x: number = 1 + 1\nconsole.log(x)', '2\n'],
      ["import { type Pair, pair } from './helper.ts'\nconst p: Pair = pair\nconsole.log(p.a)", '3\n'],
      [
        "const os = require('node:os') as any\nconsole.log(typeof os.cpus, typeof __dirname)",
        'function string\n',
      ],
      ['const x: number = await Promise.resolve(4)\nconsole.log(x, typeof require)', '4 function\n'],
      ['enum Color { Red = 5 }\nconsole.log(Color.Red)', '5\n'],
      ['class P { constructor(readonly x: number) {} }\nconsole.log(new P(6).x)', '6\n'],
      ['namespace N { export const x: number = 7 }\nconsole.log(N.x)', '7\n'],
    ]
    for (const [text, output] of cases) {
      const result = await run({ code: text })
      assert.deepEqual([result.output, result.language], [output, 'typescript'], text)
    }
    const broken = await run({ code: 'const x: = 1', language: 'ts' })
    assert.deepEqual([broken.exitCode, broken.language], [1, 'typescript'])
    // Its own end with that exit code is no sign that Node cannot run it.
    const nine = await run({ code: 'console.error("nine" as string); process.exit(9)' })
    assert.deepEqual([nine.exitCode, nine.stderr], [9, 'nine\n'])
    assert.deepEqual(leftovers(), [])
  })

  it('in TypeScript goes to whatever runs it where Node does not', async () => {
    const bin = join(sandbox.workdir, 'old')
    mkdirSync(bin)
    const put = (name: string, lines: string) => {
      writeFileSync(join(bin, name), `#!/bin/sh\n${lines}\n`)
      chmodSync(join(bin, name), 0o755)
    }
    const input = { code: 'import os from "os"\nconst x: number = 1', env: { PATH: bin } }
    const said = 'echo "$0: bad option: --disable-warning=ExperimentalWarning" >&2; exit 9'
    // One before 20.11, then one that knows all options and no TypeScript.
    put('node', said)
    put('nodejs', `exec ${process.execPath} --no-experimental-strip-types "$@"`)
    const nothing = await errorOf(await postCode(input))
    assert.equal(nothing.code, 'interpreter_not_found')
    assert.match(nothing.message, /node and nodejs cannot, and there is no tsx, ts-node, bun or deno/)
    assert.match(nothing.hint ?? '', /Node 22\.18.*tsx/)
    const which = 'for last; do :; done; echo "\x24{0##*/} \x24{last##*.}"'
    for (const [name, extension] of [
      ['deno', 'mts'],
      ['bun', 'ts'],
      ['ts-node', 'cts'],
      ['tsx', 'mts'],
    ] as const) {
      put(name, which)
      assert.equal((await run(input)).output, `${name} ${extension}\n`)
    }
    assert.deepEqual(leftovers(), [])
  })

  it('has a language of several names, and the answer has the one', async () => {
    const names = {
      py: 'python',
      python3: 'python',
      javascript: 'node',
      js: 'node',
      ts: 'typescript',
      bash: 'shell',
      sh: 'shell',
    }
    for (const [name, language] of Object.entries(names)) {
      const text = language === 'shell' ? 'echo 1' : language === 'python' ? 'print(1)' : 'console.log(1)'
      const result = await run({ code: text, language: name })
      assert.deepEqual([result.language, result.output], [language, '1\n'], name)
    }
  })

  it('arrives unchanged, whatever is in it', async () => {
    const head = 'import hashlib\nprint(hashlib.sha256(open(__file__, "rb").read()).hexdigest())\n'
    const odd = `# "quotes" 'single' \`ticks\` $HOME $(id) \\ \\n %s é 漢 🙂 \t end\r\n`
    const pieces = [odd, '# x\n', '# y\r\n', `# ${'z'.repeat(100)}\n`]
    const large = head + Array.from({ length: 30_000 }, (_, index) => pieces[index % 4]).join('')
    for (const text of [head + odd, large]) {
      const { output } = await run({ code: text, language: 'python' })
      assert.equal(output.trim(), createHash('sha256').update(text).digest('hex'))
    }
    assert.ok(large.length > 1_000_000)
  })

  it('is given to deno and bun as TypeScript, with all they may do', async () => {
    const bin = join(sandbox.workdir, 'bin')
    mkdirSync(bin)
    for (const name of ['deno', 'bun']) {
      writeFileSync(join(bin, name), '#!/bin/sh\nfor last; do :; done\necho "$*"\ncat "$last"\n')
      chmodSync(join(bin, name), 0o755)
    }
    const env = { PATH: `${bin}:${process.env.PATH}` }
    const deno = await run({ code: 'Deno.exit(0)', env })
    assert.equal(deno.language, 'deno')
    assert.match(deno.output, /^run --quiet --allow-all \/.*\/\.islet-prc-\w+\.ts\nDeno\.exit\(0\)$/)
    const bun = await run({ code: 'Bun.version', env })
    assert.match(bun.output, /^run \/.*\.ts\nBun\.version$/)
    assert.equal(bun.language, 'bun')
  })

  it('that has no interpreter, no text or no place says so', async () => {
    const env = { PATH: sandbox.workdir }
    const missing = await errorOf(await postCode({ code: 'x', language: 'bun', env }))
    assert.deepEqual([missing.status, missing.code], [422, 'interpreter_not_found'])
    assert.match(`${missing.message} ${missing.hint}`, /bun.*runtime/)
    const python = await errorOf(await postCode({ code: 'x', language: 'python', env }))
    assert.match(python.message, /python3 or python/)
    assert.equal((await errorOf(await postCode({ code: ' \n' }))).code, 'bad_request')
    assert.equal((await errorOf(await postCode({ code: 'x', language: 'cobol' }))).code, 'bad_request')
    assert.equal((await errorOf(await postCode({ code: 'echo', cwd: 'nowhere' }))).code, 'cwd_not_found')
    assert.deepEqual(leftovers(), [])
    assert.deepEqual(
      readdirSync('/tmp').filter((name) => name.startsWith('.islet-prc-')),
      [],
    )
  })

  it('falls back to the second interpreter', async () => {
    const bin = join(sandbox.workdir, 'only')
    mkdirSync(bin)
    writeFileSync(join(bin, 'python'), '#!/bin/sh\necho second\n')
    chmodSync(join(bin, 'python'), 0o755)
    const result = await run({ code: 'print()', env: { PATH: bin } })
    assert.deepEqual([result.output, result.language], ['second\n', 'python'])
  })

  it('is killed by its timeout, and when its caller goes away; its file goes too', async () => {
    const late = await run({ language: 'shell', code: 'echo begun; sleep 600', timeout: 200 })
    assert.deepEqual([late.timedOut, late.exitCode, late.output], [true, 124, 'begun\n'])
    const gate = makeGate(sandbox)
    const abort = new AbortController()
    const call = postCode({ language: 'shell', code: 'echo > gate; sleep 600' }, { signal: abort.signal })
    await gate.passed()
    assert.equal(leftovers().length, 1)
    abort.abort()
    await assert.rejects(call, { name: 'AbortError' })
    await until(() => leftovers().length === 0)
    assert.equal((await newest()).jobStatus, 'cancelled')
  })

  it('prints more than is kept', async () => {
    const result = await run({ language: 'shell', code: 'seq 1 1000', maxOutputBytes: 10 })
    assert.deepEqual([result.output, result.truncated], ['1\n2\n3\n4\n5\n', true])
  })
})
