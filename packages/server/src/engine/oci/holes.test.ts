import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOLES, holesIn } from './holes.ts'

type Case = [
  program: 'runc' | 'crun' | 'runsc',
  version: string,
  packageVersion: string | undefined,
  names: string[],
]

const LEAKED = 'CVE-2024-21626'
const MASKED = ['CVE-2025-31133', 'CVE-2025-52565', 'CVE-2025-52881']

const CASES: Case[] = [
  ['runc', '1.1.11', undefined, [LEAKED, ...MASKED]],
  ['runc', '1.1.12', undefined, MASKED],
  ['runc', '1.2.7', undefined, MASKED],
  ['runc', '1.2.8', undefined, []],
  ['runc', '1.3.2', undefined, MASKED],
  ['runc', '1.3.3', undefined, []],
  ['runc', '1.4.0', undefined, []],
  ['runc', '1.10.0', undefined, []],
  ['runc', '2.0', undefined, []],
  // Debian fixed 1.1.5 once, before the later holes were known.
  ['runc', '1.1.5+ds1', '1.1.5+ds1-1', [LEAKED, ...MASKED]],
  ['runc', '1.1.5+ds1', '1.1.5+ds1-1+b1', [LEAKED, ...MASKED]],
  ['runc', '1.1.5+ds1', '1.1.5+ds1-1+deb12u1', MASKED],
  ['runc', '1.1.5+ds1', '1.1.5+ds1-1+deb12u2', []],
  ['runc', '1.1.15+ds1', '1.1.15+ds1-2+b4', MASKED],
  ['runc', '1.1.15+ds1', '1.1.15+ds1-2+deb13u1', []],
  ['runc', '1.3.5+ds1', '1.3.5+ds1-1', []],
  // Nothing is known about old versions of other distributions, so nothing is reported.
  ['runc', '1.1.0-0ubuntu1.1', '1.1.0-0ubuntu1.1', []],
  ['crun', '1.8.1', '1.8.1-1+deb12u1', []],
  ['crun', '1.29.1', undefined, ['CVE-2026-88264', 'CVE-2026-88265']],
  ['crun', '1.30', undefined, []],
  ['crun', '1.30.2', undefined, []],
  ['runsc', 'release-20240729.0', undefined, ['CVE-2025-2713']],
  ['runsc', 'release-20250319.0', undefined, []],
  ['runsc', 'release-20261012.0', undefined, []],
  ['runsc', '0.0~20240729.0', undefined, []],
]

test('a version has the holes that its project, or Debian for its package, is known not to have mended', async () => {
  for (const [program, version, packageVersion, names] of CASES) {
    const holes = await holesIn({ program, version, packageVersion })
    assert.deepEqual(
      holes.flatMap((hole) => hole.names),
      names,
      `${program} ${packageVersion ?? version}`,
    )
  }
})

test('every hole has a name and the releases that mend it', () => {
  for (const { names, mendedIn } of HOLES) {
    for (const name of names) assert.match(name, /^CVE-20\d\d-\d{4,}$/)
    for (const version of mendedIn) assert.match(version, /^\d+(\.\d+)+$/)
  }
})
