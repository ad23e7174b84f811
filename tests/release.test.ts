// `npm run release` on a copy of this repository.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { needs } from './support/programs.ts'
import { root } from './support/server.ts'

needs('git')

const copy = mkdtempSync(join(tmpdir(), 'islet-release-'))
after(() => rmSync(copy, { recursive: true }))
const git = (...args: string[]) => execFileSync('git', args, { cwd: copy, encoding: 'utf8' })
const commit = () =>
  git('-c', 'user.name=test', '-c', 'user.email=test', 'commit', '--quiet', '--all', '--message', 'test')
const text = (path: string) => readFileSync(join(copy, path), 'utf8')
const release = (...args: string[]) =>
  spawnSync(process.execPath, ['scripts/release.ts', ...args], { cwd: copy, encoding: 'utf8' })
const today = new Date().toISOString().slice(0, 10)

makeCopy()

test('a bad version, an old version, an empty section, a tag that exists and a changed file are refused with the reason', () => {
  const cases: [string[], RegExp, () => void][] = [
    [[], /Give one version/, () => {}],
    [['1.0'], /"1\.0" is not a version/, () => {}],
    [['v9.0.0'], /"v9\.0\.0" is not a version/, () => {}],
    [['9.0.0', '9.1.0'], /Give one version/, () => {}],
    [
      ['9.0.0'],
      /Commit or remove these changes first:\s+M LICENSE/,
      () => writeFileSync(join(copy, 'LICENSE'), ''),
    ],
    [['9.0.0'], /The tag v9\.0\.0 exists already/, () => git('tag', 'v9.0.0')],
    [
      ['9.0.0'],
      /not newer than 9\.0\.0/,
      () => changelog('## Unreleased\n\n- New.\n\n## 9.0.0 (2020-01-01)\n'),
    ],
    [['9.0.0'], /nothing to release/, () => changelog('## Unreleased\n\n## 0.0.1 (2020-01-01)\n')],
    [['9.0.0'], /no section "## Unreleased"/, () => changelog('## 0.0.1 (2020-01-01)\n')],
  ]
  for (const [args, reason, prepare] of cases) {
    prepare()
    const { status, stderr } = release(...args)
    assert.equal(status, 1, String(reason))
    assert.match(stderr, reason)
    git('checkout', '--quiet', '.')
  }
  git('tag', '--delete', 'v9.0.0')
})

test('a release sets every version, moves the notes, packs, rehearses publishing and says how to publish', () => {
  const notes = text('CHANGELOG.md')
  const { status, stdout, stderr } = release('9.0.0')
  assert.equal(status, 0, stderr)
  assert.equal(
    text('CHANGELOG.md'),
    notes.replace('## Unreleased\n', `## Unreleased\n\n## 9.0.0 (${today})\n`),
  )
  for (const path of [
    'package.json',
    'packages/sdk/package.json',
    'packages/dialects/package.json',
    'packages/cli/package.json',
    'package-lock.json',
  ])
    assert.doesNotMatch(text(path), /"(version|@islet\/\w+)": "0\.1\.0"/, path)
  assert.equal(
    JSON.parse(text('package-lock.json')).packages['packages/cli'].dependencies['@islet/sdk'],
    '9.0.0',
  )
  for (const name of ['islet', 'islet-sdk', 'islet-dialects'])
    assert.ok(existsSync(join(copy, `dist/${name}-9.0.0.tgz`)), name)
  assert.match(stderr, /@islet\/sdk@9\.0\.0[\s\S]*@islet\/dialects@9\.0\.0[\s\S]*islet@9\.0\.0/)
  assert.match(stdout, /git tag v9\.0\.0\n {2}npm publish --access public \.\/dist\/islet-sdk-9\.0\.0\.tgz/)
  assert.doesNotMatch(git('status', '--porcelain'), /^\?\?/m)
})

test('a release that fails leaves the files as they were', () => {
  commit()
  writeFileSync(join(copy, 'scripts/pack.ts'), 'process.exit(3)\n')
  changelog('## Unreleased\n\n- Newer.\n\n## 9.0.0 (2020-01-01)\n')
  commit()
  const { status, stderr } = release('9.1.0')
  assert.equal(status, 1)
  assert.match(stderr, /was not prepared, and the files are as they were/)
  assert.equal(git('status', '--porcelain'), '')
})

function changelog(sections: string): void {
  writeFileSync(join(copy, 'CHANGELOG.md'), `# Changelog\n\n${sections}`)
}

/** The files as they are now, committed or not, and what was built of them. */
function makeCopy(): void {
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const files = execFileSync('git', list, { cwd: root, encoding: 'utf8' }).split('\0').filter(Boolean)
  for (const path of [...files, 'native/build'].filter((path) => existsSync(join(root, path)))) {
    mkdirSync(dirname(join(copy, path)), { recursive: true })
    cpSync(join(root, path), join(copy, path), { recursive: true, preserveTimestamps: true })
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  git('init', '--quiet')
  writeFileSync(join(copy, '.git/info/exclude'), 'node_modules\n')
  git('add', '--all')
  commit()
}
