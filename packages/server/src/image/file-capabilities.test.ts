import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { needs } from '../../../../tests/support/programs.ts'
import { dropFileCapabilities } from './file-capabilities.ts'
import { plant, scratch } from './scratch.ts'

needs('getcap', 'setcap')

const setcap = (path: string, capabilities: string) => execFileSync('setcap', [capabilities, path])
const getcap = (path: string) => execFileSync('getcap', ['-r', path]).toString()

test('an unpacked image loses its file capabilities, and a name made to lie reaches nothing outside', async () => {
  await using dir = await scratch()
  const root = join(dir.path, 'root')
  const outside = join(dir.path, 'outside')
  await plant(dir.path, {
    outside: 'x',
    'root/usr/bin/ping': 'x',
    'root/usr/bin/two words': 'x',
    'root/bin': '-> usr/bin',
    'root/out': '-> ..',
  })
  setcap(outside, 'cap_net_raw=ep')
  setcap(join(root, 'usr/bin/ping'), 'cap_net_raw=ep')
  setcap(join(root, 'usr/bin/two words'), 'cap_net_admin,cap_net_bind_service=eip')
  // getcap prints such a name as it is, so its last line is whatever its author wants.
  for (const lie of [outside, `${root}/../outside`, `${root}/out/outside`]) {
    const name = `x\n${lie} cap_net_raw=ep`
    await plant(root, { [name]: 'x' })
    setcap(join(root, name), 'cap_net_raw=ep')
  }
  await dropFileCapabilities(root)
  assert.equal(getcap(join(root, 'usr')), '')
  assert.match(getcap(outside), /cap_net_raw/)
})

test("programs of the machine with file capabilities are shadowed by copies without, and the machine's stay", async () => {
  await using dir = await scratch()
  const hostRoot = join(dir.path, 'machine')
  await plant(hostRoot, { 'usr/bin/ping': 'the program', 'usr/bin/ls': 'x', 'usr/sbin/': '' })
  const ping = join(hostRoot, 'usr/bin/ping')
  execFileSync('chmod', ['755', ping])
  setcap(ping, 'cap_net_raw=ep')
  const image = await dir.images({ hostRoot }).resolve('host')
  assert.deepEqual(image.trees[1]?.lowers, [
    { kind: 'image', name: image.name, tree: 'usr' },
    { kind: 'host-usr' },
  ])
  const usr = join(dir.path, 'images', image.name, 'usr')
  assert.deepEqual(await readdir(join(usr, 'bin')), ['ping'])
  const copy = join(usr, 'bin/ping')
  assert.equal(await readFile(copy, 'utf8'), 'the program')
  assert.equal((await lstat(copy)).mode & 0o7777, 0o755)
  assert.equal(getcap(usr), '')
  assert.match(getcap(ping), /cap_net_raw/)
})
