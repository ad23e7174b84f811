import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createIgnore, plainNames } from './globs.ts'

const ROOT = '/work'
const TABLE: [pattern: string, ignored: string[], kept: string[]][] = [
  [
    'node_modules',
    ['/work/node_modules', '/work/a/node_modules/b/c.js'],
    ['/work/node_modules2', '/work/a/x.js'],
  ],
  ['node_modules/', ['/work/node_modules', '/work/a/node_modules/b'], ['/work/a']],
  [
    '*.log',
    ['/work/a.log', '/work/.log', '/work/a/b.log', '/work/x.log/inside'],
    ['/work/a.logs', '/work/log'],
  ],
  ['.*', ['/work/.git', '/work/.git/HEAD'], ['/work/a.b']],
  [
    'src/**/*.tmp',
    ['/work/src/a.tmp', '/work/src/a/b/c.tmp'],
    ['/work/a.tmp', '/work/lib/src/a.tmp', '/work/src/a.ts'],
  ],
  ['./src/*.ts', ['/work/src/a.ts'], ['/work/src/a/b.ts', '/work/a.ts']],
  ['**/dist', ['/work/dist', '/work/a/b/dist', '/work/a/dist/index.js'], ['/work/distant']],
  ['build/**', ['/work/build', '/work/build/a/b'], ['/work/builds', '/work/a/build']],
  ['a/*/c', ['/work/a/b/c', '/work/a/b/c/d'], ['/work/a/b/b/c', '/work/a/c']],
  ['/work/out/*', ['/work/out/x', '/work/out/x/y'], ['/work/out', '/work/a/out/x']],
  ['/out', [], ['/work/out', '/out']],
  ['/**/keys', ['/work/keys', '/work/a/keys'], ['/work/a']],
  ['*.{js,ts}', ['/work/a.js', '/work/b/c.ts'], ['/work/a.tsx', '/work/a.{js,ts}']],
  ['{src/a,b}', ['/work/src/a', '/work/b', '/work/c/b'], ['/work/a', '/work/c/src/a']],
  ['x{a,{b,c}d}', ['/work/xa', '/work/xbd', '/work/xcd'], ['/work/xb', '/work/x']],
  ['{a}', ['/work/{a}'], ['/work/a']],
  ['{a,b', ['/work/{a,b'], ['/work/a']],
  ['a?c', ['/work/abc', '/work/aéc', '/work/a💡c'], ['/work/ac', '/work/abbc']],
  ['[a-c]x', ['/work/ax', '/work/cx'], ['/work/dx', '/work/[a-c]x']],
  ['[!a-c]x', ['/work/dx'], ['/work/ax', '/work/x']],
  ['[^.]*', ['/work/a'], ['/work/.a']],
  ['[]]', ['/work/]'], ['/work/[]]']],
  ['[a', ['/work/[a'], ['/work/a']],
  ['[a-]', ['/work/-', '/work/a'], ['/work/b']],
  ['\\*', ['/work/*'], ['/work/a']],
  ['\\{a,b\\}', ['/work/{a,b}'], ['/work/a']],
  ['*', ['/work/a', '/work/a/b'], ['/work']],
  ['**', ['/work/a', '/work/a/b'], ['/work']],
  ['work', ['/work/work'], ['/work', '/work/a']],
  ['/work', [], ['/work', '/work/a']],
  ['./', [], ['/work/a']],
  ['/', [], ['/work/a']],
  ['a', ['/work/a'], ['/elsewhere/a', '/workshop/a']],
  ['(a+)+', ['/work/(a+)+'], ['/work/aa']],
]

for (const [pattern, ignored, kept] of TABLE) {
  test(`${pattern} ignores what it should and nothing else`, () => {
    const isIgnored = createIgnore([pattern], ROOT)
    for (const path of ignored) assert.equal(isIgnored(path), true, path)
    for (const path of kept) assert.equal(isIgnored(path), false, path)
  })
}

test('the root may be the root directory', () => {
  const isIgnored = createIgnore(['a/b', 'c'], '/')
  for (const path of ['/a/b', '/a/b/x', '/c', '/x/c/y']) assert.equal(isIgnored(path), true, path)
  for (const path of ['/', '/a', '/x/a/b']) assert.equal(isIgnored(path), false, path)
})

test('without patterns nothing is ignored', () => {
  assert.equal(createIgnore([], ROOT)('/work/a'), false)
})

test('more directories than the cache holds get the right answer too', () => {
  const isIgnored = createIgnore(['d7*'], ROOT)
  for (let round = 0; round < 2; round++)
    for (let n = 0; n < 1000; n++)
      assert.equal(isIgnored(`/work/d${n}/x`), String(n).startsWith('7'), `/work/d${n}/x`)
})

test('patterns that are meant to be slow are fast', () => {
  const name = 'a'.repeat(255)
  const path = `${ROOT}${`/${name}`.repeat(15)}`
  const slow = [`${'*a'.repeat(120)}b`, `**/${'**/a*/'.repeat(100)}b`, `${'a*'.repeat(100)}?b`]
  const started = process.cpuUsage()
  assert.equal(createIgnore(slow, ROOT)(path), false)
  const { user } = process.cpuUsage(started)
  assert.ok(user < 10_000_000, `took ${user} us; backtracking would take for ever`)
})

test('braces that multiply are refused', () => {
  for (const pattern of ['{a,b}'.repeat(20), `${'{a,'.repeat(300)}x${'}'.repeat(300)}`])
    assert.throws(() => createIgnore([pattern], ROOT), { code: 'bad_request' })
  const long = Array.from({ length: 100 }, (_, n) => `${n}${'x'.repeat(1000)}`)
  assert.throws(() => createIgnore(long, ROOT), { code: 'bad_request' })
})

test('only names that fnmatch reads the same way are plain', () => {
  assert.deepEqual(plainNames(['*.log', 'a/b', 'a?', '[x]', '{.git,tmp/}', './c', '\\*']), [
    '*.log',
    '.git',
    'tmp',
    'c',
    '\\*',
  ])
})
