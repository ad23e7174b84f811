import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

/** A pattern that takes exponential time takes years; the machine may be busy. */
const PATIENCE_MS = 120_000
const LINE = 500
const TEXT = 16 * 1024

/** What the patterns look for, so that each of them begins often and hardly ever ends. */
const PIECES = [
  ...[
    'a',
    'A',
    ' ',
    '\n',
    'a,',
    'a.',
    '(',
    ')',
    '[',
    '{',
    '<',
    '>',
    '|',
    ';',
    ':',
    '=',
    '-a ',
    '#',
    '//',
    '/*',
  ],
  ...['"', "'", '`', '\\', '\\`', '$(', '<<A\n', '<<A', 'for a in ', 'if(', 'lambda ', 'import a,', 'from '],
  ...['import ', 'export ', 'declare ', 'x = ', 'a=b ', 'function', 'function a<A', 'class a(', 'new A<'],
  ...[
    'interface A<',
    ' extends ',
    'type A<',
    'namespace a',
    'public ',
    'static ',
    'const a:',
    'x as A',
    '|cat ',
  ],
  ...['):A', 'A<>|', '):A<>|', 'A<A<A<A', '=>', '(a:A', ',a?:A|', '[]', 'readonly '],
]

test('the language of hostile code is detected in bounded time', () => {
  const inputs = PIECES.flatMap((a) => [
    fill(a, TEXT),
    ...PIECES.map((b) => lines(fill(a + b, LINE))),
    ...[' ', '\n', 'A<>|', 'for '].map((b) => lines(a + fill(b, LINE - a.length))),
    ...[')', 'for '].map((b) => lines(fill(a, LINE / 2) + fill(b, LINE / 2))),
  ])
  assertEnds(
    'detect.ts',
    'detectLanguage',
    inputs.map((code) => [code]),
  )
})

test('the interpreters for hostile code are chosen in bounded time', () => {
  const pieces = [
    'constructor(',
    'constructor(private',
    'export\n',
    'const ',
    'enum a',
    'import a\n',
    'await\n',
    'a=\n',
  ]
  const codes = pieces.map((piece) => fill(piece, 4 << 20))
  assertEnds('interpreters.ts', 'interpretersOf', [
    ...codes.map((code) => ['typescript', code]),
    ...codes.map((code) => ['node', code]),
  ])
})

function fill(piece: string, length: number): string {
  return piece.repeat(Math.floor(length / piece.length))
}

/** A few lines, because each takes the same time. */
function lines(line: string): string {
  return fill(`${line}\n`, TEXT / 4)
}

/** In another process, which can be killed in the middle of a pattern. */
function assertEnds(file: string, name: string, calls: unknown[][]): void {
  const script = `const { readFileSync, writeSync } = require('node:fs')
const calls = JSON.parse(readFileSync(0, 'utf8'))
import(${JSON.stringify(new URL(file, import.meta.url))}).then((module) => {
  for (const [index, call] of calls.entries()) {
    module.${name}(...call)
    writeSync(1, \`\${index + 1}\\n\`)
  }
})`
  const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', script], {
    input: JSON.stringify(calls),
    encoding: 'utf8',
    timeout: PATIENCE_MS,
    killSignal: 'SIGKILL',
  })
  const ended = Number(stdout.trim().split('\n').at(-1))
  assert.equal(ended, calls.length, `it hangs in ${JSON.stringify(calls[ended])?.slice(0, 200)} ${stderr}`)
  assert.equal(status, 0, stderr)
}
