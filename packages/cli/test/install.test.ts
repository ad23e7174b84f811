// What a machine gets: the unit of systemd. No test here may touch the service manager of the machine it runs on.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { renderUnit, settingsOf } from '../src/systemd/unit.ts'
import { BIN, islet } from './islet.ts'

const run = promisify(execFile)
const isRoot = process.geteuid?.() === 0

test('service install --print prints the unit that runs this very program, and no secret', async () => {
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
})

test('service install refuses what a server would refuse, before anything is written', async () => {
  for (const [words, problem] of [
    [['--port', '0'], /not a port for a service/],
    [['--host', 'not a host'], /ISLET_HOST is "not a host"/],
  ] as const) {
    const { exitCode, stderr } = await islet(['service', 'install', '--print', ...words])
    assert.equal(exitCode, 2)
    assert.match(stderr, problem)
  }
})

test('paths with signs that mean something to systemd are written so that they mean themselves', () => {
  const settings = { ISLET_DATA_DIR: '/srv/100% "mine" \\o/', ISLET_GROUP: '' }
  const unit = renderUnit({ node: '/opt/$HOME/node', islet: '/opt/50%/islet.js', settings, version: 0 })
  assert.match(unit, /^ExecStart="\/opt\/\$\$HOME\/node" "\/opt\/50%%\/islet\.js"/m)
  assert.deepEqual(settingsOf(unit), settings)
  assert.throws(() => renderUnit({ node: '/a\nb', islet: '/', settings, version: 0 }), { code: 'bad_path' })
})

test('systemd itself finds nothing wrong with the unit', { skip: lacks('systemd-analyze') }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'islet-unit-'))
  try {
    const path = join(directory, 'islet.service')
    writeFileSync(path, (await islet(['service', 'install', '--print'])).stdout)
    const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', path])
    assert.equal(
      `${stdout}${stderr}`
        .split('\n')
        .filter((line) => line.includes('islet'))
        .join('\n'),
      '',
    )
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('without systemd install says so, and what to do instead', {
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

function lacks(program: string): string | false {
  try {
    execFileSync('which', [program])
    return false
  } catch {
    return `${program} is not installed`
  }
}
