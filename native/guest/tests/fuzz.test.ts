// Runs the fuzz targets briefly, from seeds with good coverage. For longer runs: native/build/fuzz/guest_frames.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import * as messages from '../../../packages/server/src/guest/messages.gen.ts'
import { encodeFields, type FieldTable } from '../../../packages/server/src/wire/fields.ts'
import { encodeFrame } from '../../../packages/server/src/wire/frames.ts'
import { needs } from '../../../tests/support/programs.ts'
import { golden } from './golden.ts'

needs('clang', 'make')

const SECONDS = Number(process.env.GUEST_FUZZ_SECONDS ?? 2)
const native = resolve(import.meta.dirname, '../..')
const spawnFields = encodeFields(messages.FIELDS.SPAWN as unknown as FieldTable, {
  id: 'prc-1',
  argv: ['sh', '-c', 'true'],
  env: ['A=b', 'PATH=/bin'],
  cwd: '/tmp',
  user: 'root:root',
  timeoutMs: 1000,
  stdin: 1,
  pty: { cols: 80, rows: 24 },
  rlimit: [{ resource: 7, soft: 1, hard: 2 }],
})

let dir: string
before(() => {
  assert.equal(
    spawnSync('clang', ['--version']).status,
    0,
    'clang is missing: the fuzz targets need it; `scripts/setup` installs clang-14 and libclang-rt-14-dev',
  )
  execFileSync(
    'make',
    ['-C', native, 'build/fuzz/guest_frames', 'build/fuzz/guest_spawn', 'build/fuzz/guest_tar'],
    {
      stdio: 'pipe',
    },
  )
  dir = mkdtempSync(join(tmpdir(), 'guest-test-fuzz-'))
})
after(() => rmSync(dir, { recursive: true, force: true }))

function archive(): Buffer {
  const tree = join(dir, 'tree')
  mkdirSync(join(tree, 'd'.repeat(120)), { recursive: true })
  writeFileSync(join(tree, 'file'), 'content')
  return execFileSync('tar', ['-c', '--format=pax', '-C', tree, '.'])
}

const seeds: Record<string, () => Buffer[]> = {
  guest_frames: () => [
    Buffer.concat([Buffer.from([1]), ...golden().map(({ sent }) => sent)]),
    Buffer.concat([
      Buffer.from([1]),
      encodeFrame(messages.MESSAGE.WRITE, 1, encodeFields([{ tag: 1, name: 'p', kind: 'str' }], { p: '/x' })),
      encodeFrame(messages.MESSAGE.DATA, 1, Buffer.alloc(100)),
    ]),
  ],
  guest_spawn: () => [spawnFields],
  guest_tar: () => [archive()],
}

describe('fuzzing finds nothing in', () => {
  for (const [target, make] of Object.entries(seeds)) {
    test(target, () => {
      const corpus = join(dir, target)
      mkdirSync(corpus)
      for (const [i, seed] of make().entries()) writeFileSync(join(corpus, `seed-${i}`), seed)
      const args = [
        `-max_total_time=${SECONDS}`,
        '-max_len=20000',
        `-artifact_prefix=${corpus}/found-`,
        '-close_fd_mask=1',
        corpus,
      ]
      const run = spawnSync(join(native, 'build/fuzz', target), args, { encoding: 'utf8' })
      assert.equal(run.status, 0, run.stderr.slice(-4000))
      assert.match(run.stderr, /Done \d+ runs/)
    })
  }
})
