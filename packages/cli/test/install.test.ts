// The systemd unit and the completions. No test here may change the machine it runs on.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { madeGroupsOf, renderUnit, settingsOf } from '../src/systemd/unit.ts'
import { BIN, islet } from './islet.ts'

const run = promisify(execFile)
const isRoot = process.geteuid?.() === 0

test('service install --print prints a unit that runs this program and has no secret', async (t) => {
  const words = ['service', 'install', '--print', '--port', '7411', '--data-dir', '/srv/my islet']
  const { stdout, exitCode } = await islet(words, { env: { ISLET_API_KEY: 'islet_secret_of_the_test' } })
  assert.equal(exitCode, 0)
  assert.ok(stdout.includes(`ExecStart="${process.execPath}" "${BIN}" "serve" "--no-setup"\n`), stdout)
  assert.deepEqual(settingsOf(stdout), { ISLET_DATA_DIR: '/srv/my islet', ISLET_PORT: '7411' })
  assert.doesNotMatch(stdout, /secret_of_the_test|ISLET_API_KEY/)
  for (const line of ['Restart=always', 'KillMode=process', 'Delegate=yes', 'OOMScoreAdjust=-500'])
    assert.match(stdout, new RegExp(`^${line}$`, 'm'))
  // Sandboxes would inherit the first, and lose their pool with the others.
  assert.doesNotMatch(stdout, /^(NoNewPrivileges|PrivateTmp|ProtectSystem|ProtectHome)=/m)
  await t.test('systemd accepts the unit', { skip: lacks('systemd-analyze') }, () => verify(stdout))
})

test('service install refuses wrong settings before it writes anything', async () => {
  for (const [words, problem] of [
    [['--port', '0'], /not a port for a service/],
    [['--host', 'not a host'], /ISLET_HOST is "not a host"/],
  ] as const) {
    const { exitCode, stderr } = await islet(['service', 'install', '--print', ...words])
    assert.equal(exitCode, 2)
    assert.match(stderr, problem)
  }
})

test('characters that systemd expands are escaped', () => {
  const settings = { ISLET_DATA_DIR: '/srv/100% "mine" \\o/', ISLET_GROUP: '' }
  const unit = renderUnit({ node: '/opt/$HOME/node', islet: '/opt/50%/islet.js', settings, version: 0 })
  assert.match(unit, /^ExecStart="\/opt\/\$\$HOME\/node" "\/opt\/50%%\/islet\.js"/m)
  assert.deepEqual(settingsOf(unit), settings)
  assert.throws(() => renderUnit({ node: '/a\nb', islet: '/', settings, version: 0 }), { code: 'bad_path' })
})

test('uninstall --purge removes only the group that install created', {
  skip: !isRoot && 'only root can mount its own /etc',
}, async () => {
  // Changes to /etc, /usr and /var stay in memory and vanish with the namespace.
  const script = `set -e
    mount -t tmpfs none /run
    for name in etc usr var; do
      mkdir -p /run/$name/upper /run/$name/work
      mount -t overlay -o lowerdir=/$name,upperdir=/run/$name/upper,workdir=/run/$name/work none /$name
    done
    groupadd islet-theirs; groupadd islet-ours
    mkdir -p /etc/systemd/system; printf '%s' "$UNIT" > /etc/systemd/system/islet.service
    "$@" >&2
    getent group islet-theirs islet-ours | cut -d: -f1`
  const settings = { ISLET_DATA_DIR: '/var/lib/islet-none', ISLET_GROUP: 'islet-theirs' }
  const words = [process.execPath, BIN, 'service', 'uninstall', '--purge', '--yes']
  for (const [madeGroups, left] of [
    [[], 'islet-theirs\nislet-ours\n'],
    [['islet-ours'], 'islet-theirs\n'],
  ] as const) {
    const unit = renderUnit({ node: '/node', islet: '/islet', settings, madeGroups, version: 0 })
    assert.deepEqual(madeGroupsOf(unit), madeGroups)
    const env = { ...process.env, UNIT: unit, ISLET_DATA_DIR: '' }
    const { stdout } = await run('unshare', ['--mount', 'sh', '-c', script, 'sh', ...words], { env })
    assert.equal(stdout, left)
  }
})

test('without systemd, install fails with a hint', {
  skip: !isRoot && 'only root can hide /run',
}, async () => {
  const script = 'mount -t tmpfs none /run && exec "$@"'
  const words = [process.execPath, BIN, 'service', 'install', '--json']
  await assert.rejects(
    run('unshare', ['--mount', 'sh', '-c', script, 'sh', ...words]),
    (error: { stderr: string }) => {
      const { code, hint } = JSON.parse(error.stderr).error
      assert.equal(code, 'no_systemd')
      assert.match(hint, /service install --print/)
      return true
    },
  )
})

describe('completion install', () => {
  const home = mkdtempSync(join(tmpdir(), 'islet-home-'))
  after(() => rmSync(home, { recursive: true }))
  /** Root would install for the whole machine, so the command runs as another user in a user namespace. */
  const wrapper = isRoot ? ['unshare', '--user', '--map-user=1000'] : []
  const asUser = (words: string[], env: Record<string, string> = {}) =>
    islet(['completion', ...words], { env: { HOME: home, SHELL: '/bin/bash', ...env }, wrapper })

  test('writes the file of the shell in $SHELL once; uninstall removes it', async () => {
    const path = join(home, '.local/share/bash-completion/completions/islet')
    const first = JSON.parse((await asUser(['install', '--json'])).stdout)
    assert.deepEqual(first, { shell: 'bash', path, changed: true })
    assert.equal(JSON.parse((await asUser(['install', '--json'])).stdout).changed, false)
    // bash-completion does this at the first completion of islet.
    const script = `islet() { '${process.execPath}' '${BIN}' "$@"; }
      source '${path}'; COMP_WORDS=(islet sna); COMP_CWORD=1; _islet; echo "\${COMPREPLY[@]}"`
    assert.equal((await run('bash', ['-c', script])).stdout, 'snapshot\n')
    assert.match((await asUser(['uninstall'])).stderr, /^Removed .*completions\/islet\.$/m)
    assert.equal(existsSync(path), false)
    assert.match((await asUser(['uninstall'])).stderr, /^There is no /)
  })

  test('knows the files of zsh and fish, and what zsh needs', async () => {
    const zsh = await asUser(['install', 'zsh'])
    assert.match(zsh.stderr, /Wrote .*zsh\/site-functions\/_islet\.\n.*fpath=\(.*site-functions \$fpath\)/)
    const config = join(home, 'config')
    const fish = await asUser(['install', '--json'], { SHELL: '/usr/bin/fish', XDG_CONFIG_HOME: config })
    assert.equal(JSON.parse(fish.stdout).path, join(config, 'fish/completions/islet.fish'))
    for (const [shell, path] of [
      ['zsh', join(home, '.local/share/zsh/site-functions/_islet')],
      ['fish', join(config, 'fish/completions/islet.fish')],
    ] as const)
      if (!lacks(shell)) await run(shell, ['-n', path])
  })

  test('names the known shells if $SHELL is another', async () => {
    const { exitCode, stderr } = await asUser(['install'], { SHELL: '/bin/ksh' })
    assert.equal(exitCode, 2)
    assert.match(stderr, /no completion for ksh.*\n.*bash, zsh, fish/)
  })
})

async function verify(unit: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'islet-unit-'))
  try {
    const path = join(directory, 'islet.service')
    writeFileSync(path, unit)
    const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', path])
    const complaints = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('islet'))
    assert.deepEqual(complaints, [])
  } finally {
    rmSync(directory, { recursive: true })
  }
}

function lacks(program: string): string | false {
  try {
    execFileSync('which', [program])
    return false
  } catch {
    return `${program} is not installed`
  }
}
