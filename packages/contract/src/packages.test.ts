import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSandbox, LIMITS } from './index.ts'

const isTaken = (field: string, name: unknown) => createSandbox.safeParse({ [field]: [name] }).success

const TAKEN = {
  dependencies: [
    'jq',
    'g++',
    'libstdc++6',
    '7zip',
    'python3.11',
    'jq=1.6-2.1+deb12u1',
    'vim=2:9.0.1378-2~bpo1',
  ],
  packages: [
    ...[
      'cowsay',
      'JSONStream',
      '@types/node',
      '@types/node@24',
      'a@1.2.3-rc.1+build',
      'a@^1.2',
      'a@~1',
      'a@latest',
    ],
    ...['lodash.merge', 'a@1.x'],
  ],
  pip: [
    'six',
    'ruamel.yaml',
    'six==1.17.0',
    'httpx[http2,zstd]>=0.27,<1',
    'a~=1.4',
    'a===1.0',
    'a!=1.5.*',
    'Django',
  ],
}
const REFUSED = {
  dependencies: [
    ...[
      '-y',
      'jq-',
      'jq ',
      'JQ',
      'jq/sid',
      'jq:arm64',
      './x.deb',
      'jq=$(id)',
      'a;b',
      '~nfoo',
      '?name',
      '',
      'jq=',
      'a,b',
    ],
    ...['jq\n', 'x.*', '^x', 'jq=x', '/x'],
  ],
  packages: [
    ...[
      '-g',
      'a b',
      '../x',
      './x',
      'file:x',
      'user/repo',
      'git+https://x',
      'a@npm:b',
      'x.tgz',
      'a@1.tgz',
      'a@>1',
      '.',
      'a|b',
    ],
    ...[
      '',
      'a@',
      '@a',
      '@a/b/c',
      'https://x/y',
      'a@file:b',
      'a@git+ssh://b',
      '_a',
      'a@../b',
      'a\n',
      'x.TAR',
      '~/x',
    ],
  ],
  pip: [
    ...[
      '-r',
      '--index-url=x',
      './x',
      'x @ https://x',
      'x.whl',
      'x==1.zip',
      'git+https://x',
      'a b',
      'a;b',
      'a=1',
      '[x]',
    ],
    ...[
      '',
      'a[',
      'a==',
      'a==1,',
      'a,b',
      'a==1 --pre',
      "a; python_version<'3'",
      'a==$(id)',
      'a\n',
      'x.tar.gz',
      '../a',
    ],
  ],
}

for (const [field, names] of Object.entries(TAKEN))
  for (const name of names)
    test(`${field} takes ${JSON.stringify(name)}`, () => assert.ok(isTaken(field, name)))

for (const [field, names] of Object.entries(REFUSED))
  for (const name of names)
    test(`${field} refuses ${JSON.stringify(name)}`, () => assert.ok(!isTaken(field, name)))

test('lists and names are bounded, and a long name costs no time', () => {
  const { packages, packageNameLength } = LIMITS
  for (const field of Object.keys(TAKEN)) {
    assert.ok(createSandbox.safeParse({ [field]: Array(packages).fill('six') }).success)
    assert.ok(!createSandbox.safeParse({ [field]: Array(packages + 1).fill('six') }).success)
    assert.ok(isTaken(field, 'a'.repeat(packageNameLength)))
    for (const name of [
      'a'.repeat(packageNameLength + 1),
      `${'a'.repeat(200_000)}!`,
      `${'a.'.repeat(100_000)}!`,
    ])
      assert.ok(!isTaken(field, name))
    assert.ok(!isTaken(field, 5))
  }
})

test('a snapshot takes no packages; empty lists are none', () => {
  assert.ok(!createSandbox.safeParse({ snapshot: 'tag', pip: ['six'] }).success)
  assert.ok(createSandbox.safeParse({ snapshot: 'tag', pip: [], packages: [], dependencies: [] }).success)
})
