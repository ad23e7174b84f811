import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { lstat, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { needs } from '../../../../tests/support/programs.ts'
import { dropFileCapabilities } from './file-capabilities.ts'
import { plant, scratch } from './scratch.ts'

needs('getcap', 'setcap')

const setcap = (path: string, capabilities: string) => execFileSync('setcap', [capabilities, path])
const getcap = (path: string) => execFileSync('getcap', ['-r', path]).toString()

test('an unpacked image loses its file capabilities, and hostile names reach nothing outside', async () => {
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
  // getcap prints such names unescaped, so their author controls whole lines of its output.
  const lies = [outside, `${root}/../outside`, `${root}/out/outside`].map((lie) => `x\n${lie} cap_net_raw=ep`)
  for (const name of [...lies, '-r', 'ends in a break\n', '= cap_net_raw=ep', `a${' ='.repeat(120)}\t`]) {
    await plant(root, { [name]: 'x' })
    setcap(join(root, name), 'cap_net_raw=ep')
  }
  const bytes = Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe])])
  await writeFile(bytes, 'x')
  execFileSync('sh', ['-c', 'setcap cap_net_raw=ep "$0"/"$(printf "\\377\\376")"', root])
  await plant(
    root,
    Object.fromEntries(Array.from({ length: 1200 }, (_, number) => [`usr/lib/${number}`, 'x'])),
  )
  await dropFileCapabilities(root)
  assert.equal(getcap(root), '')
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
