// The isolation of `npm run fresh`, with a root of a few programs: it acts like a separate machine, and leaves nothing behind.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { clean, enter } from '../scripts/fresh/walls.ts'
import { copyProgram, needs } from './support/programs.ts'

needs('ip', 'nft')

const name = `islet-fresh-${process.pid}`
const root = `/var/tmp/${name}`
const SCRIPT = `
cat /proc/self/mountinfo > /root/mounts
ls /proc > /root/processes
ls /sys/class/net > /root/links
cat /proc/self/cgroup > /root/cgroups
ls / > /root/top
(while :; do sleep 1; done) &
exit 7
`

test('a script has mounts, processes, network and cgroups of its own, and none of them stays', async () => {
  for (const directory of ['root', 'proc', 'sys', 'dev', 'run', 'tmp']) {
    mkdirSync(join(root, directory), { recursive: true })
  }
  for (const program of ['/bin/sh', '/bin/cat', '/bin/ls', '/bin/sleep', '/bin/umount', '/bin/rmdir']) {
    copyProgram(program, root)
  }
  try {
    assert.equal(await enter(name, root, SCRIPT), 7)
    writeFileSync(join(root, 'pool.img'), Buffer.alloc(1 << 20))
    execFileSync('losetup', ['--find', join(root, 'pool.img')])
    const said = (file: string) =>
      readFileSync(join(root, 'root', file), 'utf8')
        .trim()
        .split('\n')
    assert.deepEqual(said('processes').filter((entry) => /^\d+$/.test(entry)).length, 2, 'the script and ls')
    assert.deepEqual(said('links'), ['eth0', 'lo'])
    assert.ok(said('cgroups').every((line) => /:\/(init)?$/.test(line)))
    assert.ok(!said('top').includes('old'))
    const points = said('mounts').map((line) => line.split(' ')[4]!)
    for (const point of ['/', '/proc', '/sys', '/dev', '/run']) assert.ok(points.includes(point), point)
    assert.ok(
      points.every((point) => /^\/(proc|sys|dev|run)?(\/|$)/.test(point)),
      points.join(' '),
    )
  } finally {
    await clean(name)
  }
  assert.ok(!existsSync(root))
  const loops = execFileSync('losetup', ['--list', '--noheadings', '--output', 'NAME,BACK-FILE'], {
    encoding: 'utf8',
  })
  assert.ok(!loops.includes(root), loops)
  assert.deepEqual(globSync(`/sys/fs/cgroup/{,*/}${name}`), [])
  for (const args of [
    ['ip', 'netns', 'list'],
    ['ip', 'link'],
    ['nft', 'list', 'tables'],
  ] as const) {
    assert.doesNotMatch(
      execFileSync(args[0], args.slice(1), { encoding: 'utf8' }),
      new RegExp(`\\b(${name}|isf${process.pid})\\b`),
    )
  }
})
