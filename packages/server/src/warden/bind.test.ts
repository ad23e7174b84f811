import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { BindFields } from './messages.gen.ts'
import { type Cell, startCell } from './testing/cell.ts'
import { Warden } from './warden.ts'

const run = promisify(execFile)
const UIDS = 65536
const UID_START = 2100 * UIDS
// Of this run only, so that several can go side by side.
const CGROUP = `isltest-bind-${process.pid}`
const BRIDGE = `islt${process.pid}`
const NET = `10.231.${process.pid % 250}`
const VETH = `islt${process.pid}v`
const MIB = 1024 ** 2
const reason = process.getuid?.() === 0 ? undefined : 'binding needs root'

for (const portable of [false, true]) {
  describe(`bind${portable ? ' the way older kernels can' : ''}`, { skip: reason }, () => {
    let dir: string
    let warden: Warden
    let cells: Cell[] = []
    let made = 0

    const newCell = async () => {
      const number = made++
      const cell = await startCell(dir, `sh${number}`, CGROUP, UID_START + number * UIDS)
      cells.push(cell)
      await warden.request('LAYER_CREATE', { layer: cell.name })
      return cell
    }
    const fields = (cell: Cell, image = 'base'): BindFields => ({
      pid: cell.pid,
      uidBase: cell.uidBase,
      layer: cell.name,
      hostname: `host-${cell.name}`,
      cgroup: cell.name,
      limits: { memoryBytes: 64 * MIB, cpuMillis: 500, pids: 50 },
      tree: [
        { tree: 'root', at: '/', lower: [{ kind: 2, name: image, tree: 'root' }] },
        { tree: 'usr', at: '/usr', lower: [{ kind: 3 }] },
      ],
    })

    before(async () => {
      dir = mkdtempSync(join(tmpdir(), 'islet-bind-'))
      const options = {
        runDir: join(dir, 'run'),
        bridge: BRIDGE,
        cgroup: CGROUP,
        uidStart: UID_START,
        uidCount: 64,
      }
      warden = await Warden.start({ dataDir: dir, ...options, portable })
      makeImages(join(dir, 'images'))
      await warden.request('BRIDGE_CREATE', { address: `${NET}.1`, prefix: 24 })
    })
    after(async () => {
      for (const cell of cells) {
        await cell.close()
        await warden.request('CGROUP_DELETE', { cgroup: cell.name })
      }
      cells = []
      await warden.request('BRIDGE_DELETE', {})
      await warden.close()
      assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(dir), 'a mount is left on the host')
      rmSync(dir, { recursive: true, force: true })
      for (const group of groups()) rmdirSync(group)
    })

    it('gives a running cell its root, seen through its own ids', async () => {
      const cell = await newCell()
      await warden.request('BIND', fields(cell))
      assert.equal((await cell.sh('id -u; hostname; cat /etc/motd')).trim(), `0\nhost-${cell.name}\nbase`)
      await cell.sh('echo hi > /file; chown 1000:7 /file; mkdir /usr/made; rm /etc/motd; mv /lowdir /moved')
      assert.equal((await cell.sh('stat -c %u:%g /file /usr/made /moved/inside')).trim(), '1000:7\n0:0\n0:0')
      const upper = join(dir, 'pool/layers', cell.name)
      const { stdout } = await run('stat', ['-c', '%u:%g', join(upper, 'root/file'), join(upper, 'usr/made')])
      assert.equal(stdout, '1000:7\n0:0\n', 'ids on disk are natural')
      const mounts = cell.mounts().map((line) => line.split(' '))
      const at = (path: string) => mounts.find((mount) => mount[4] === path)!
      assert.deepEqual(
        mounts
          .map((mount) => mount[4])
          .sort()
          .filter((path) => /^\/[^/]*$/.test(path!)),
        ['/', '/.islet', '/dev', '/proc', '/sys', '/tmp', '/usr'],
      )
      for (const path of ['/', '/usr']) assert.match(at(path)[5]!, /^rw,nodev/)
      assert.ok(!at('/usr')[5]!.includes('nosuid'))
      assert.match(await cell.sh('ls -l /usr/bin/passwd 2>/dev/null || ls -l /usr/bin/su'), /^-rws/)
      assert.match(
        await cell.sh('cat /proc/1/comm; echo x > /dev/null; echo > /tmp/t; echo > /dev/shm/s'),
        /idle/,
      )
    })

    it('writes the files of /etc before the root is visible, and follows no symlinks', async () => {
      const file = (name: string, content: string) => ({ name, content: Buffer.from(content) })
      const etc = [
        file('hostname', 'me\n'),
        file('motd', 'changed\n'),
        file('resolv.conf', ''),
        file('outside', 'in\n'),
      ]
      const cell = await newCell()
      const bound = await warden.request('BIND', { ...fields(cell, 'linked'), etc })
      assert.equal(bound.etc, 1)
      const shown = await cell.sh('cd /etc; cat hostname motd outside; stat -c "%n %F %a %u:%g" *')
      assert.equal(
        shown,
        `me\nchanged\nin\n${['hostname', 'motd', 'outside', 'resolv.conf'].map((name) => `${name} regular ${name === 'resolv.conf' ? 'empty ' : ''}file 644 0:0`).join('\n')}\n`,
      )
      assert.equal(readFileSync(join(dir, 'images/outside'), 'utf8'), 'kept')
      const over = { ...fields(cell, 'linked'), etc: [file('hostname', 'again\n')] }
      assert.equal((await warden.request('BIND', over)).etc, 1)
      assert.equal(await cell.sh('cat /etc/hostname /etc/motd'), 'again\nchanged\n')
      await cell.sh('cd /etc; rm hostname; mkdir hostname')
      assert.equal((await warden.request('BIND', over)).etc, 0, 'a directory is not replaced')
      assert.equal(await cell.sh('ls /etc'), 'hostname\nmotd\noutside\nresolv.conf\n')
      await cell.sh('cd /etc; rmdir hostname; head -c 65537 /dev/zero > hostname')
      assert.equal((await warden.request('BIND', over)).etc, 0, 'what may take long to let go of is left')
      await cell.sh('cd /etc; rm hostname; mkfifo hostname')
      assert.equal((await warden.request('BIND', over)).etc, 1, 'a fifo is replaced, and not opened')
      await cell.sh('mv /etc /other; ln -s /other /etc; rm /other/hostname')
      assert.equal((await warden.request('BIND', over)).etc, 0, 'a link is not followed')
      assert.equal(await cell.sh('ls /other'), 'motd\noutside\nresolv.conf\n')
    })

    it('writes to /etc by plain names, few files and small ones', async () => {
      const cell = await newCell()
      const content = Buffer.from('x')
      for (const etc of [
        [{ name: '../x', content }],
        [{ name: '..', content }],
        [{ name: '.x', content }],
        [{ name: 'a/b', content }],
        [{ name: '', content }],
        [{ name: 'a', content: Buffer.alloc(4097) }],
        Array.from({ length: 9 }, (_, index) => ({ name: `f${index}`, content })),
      ])
        await assert.rejects(warden.request('BIND', { ...fields(cell), etc }), { kind: 'BAD_REQUEST' })
    })

    it('lets the owner of a file inside write it, and nobody else', async () => {
      const cell = await newCell()
      await warden.request('BIND', fields(cell))
      await cell.sh('mkdir /home; chown 1000 /home; echo root > /only-root; chmod 600 /only-root')
      await cell.sh('echo mine > /home/mine', 1000)
      assert.notEqual((await cell.exec(['/bin/sh', '-c', 'cat /only-root'], 1000)).code, 0)
    })

    it('replaces a root repeatedly and leaves no mount of the previous one', async () => {
      const cell = await newCell()
      await warden.request('BIND', fields(cell))
      await cell.sh('echo first > /mark')
      const count = cell.mounts().length
      for (let i = 0; i < 5; i++) {
        await warden.request('LAYER_CREATE', { layer: `${cell.name}-${i}` })
        await warden.request('BIND', { ...fields(cell), layer: `${cell.name}-${i}` })
        assert.equal(
          (await cell.sh('cat /mark 2>/dev/null; echo again > /mark; ls /proc/1/comm')).trim(),
          '/proc/1/comm',
        )
        assert.equal(cell.mounts().length, count)
      }
      await warden.request('BIND', { ...fields(cell), cgroup: undefined, limits: undefined })
      assert.equal((await cell.sh('cat /mark')).trim(), 'first')
    })

    it('starts from a saved layer by adding it as a lower layer', async () => {
      const cell = await newCell()
      await warden.request('BIND', fields(cell))
      await cell.sh('echo saved > /saved; rm /etc/motd; mv /lowdir /elsewhere')
      await warden.request('LAYER_CLONE', { from: cell.name, to: 'saved' })
      const second = await newCell()
      const bind = fields(second)
      bind.tree![0]!.lower!.unshift({ kind: 1, name: 'saved', tree: 'root' })
      await warden.request('BIND', bind)
      assert.equal(
        (await second.sh('cat /saved /elsewhere/inside; ls /etc/motd /lowdir 2>/dev/null; true')).trim(),
        'saved\ninside',
      )
      await second.sh('mv /elsewhere /third; cat /third/inside')
    })

    it('never follows what a hostile image puts at a mount point', async () => {
      const cell = await newCell()
      await warden.request('BIND', fields(cell, 'hostile'))
      assert.equal(
        (await cell.sh('stat -c %F /proc /dev /tmp /sys /.islet')).trim(),
        Array(5).fill('directory').join('\n'),
      )
      assert.match(await cell.sh('cat /proc/1/comm'), /idle/)
      assert.deepEqual(readdirSync(join(dir, 'images/hostile/root/etc')), ['motd'], 'the image is untouched')
    })

    it('refuses processes and ids that are not a cell of ours', async () => {
      const cell = await newCell()
      const bind = (change: BindFields) => warden.request('BIND', { ...fields(cell), ...change })
      await assert.rejects(bind({ pid: process.pid }), { kind: 'DENIED', stage: 'cell' })
      await assert.rejects(bind({ uidBase: cell.uidBase + UIDS }), { kind: 'DENIED', stage: 'cell' })
      await assert.rejects(bind({ uidBase: 0 }), { kind: 'BAD_REQUEST' })
      await assert.rejects(bind({ uidBase: UID_START - UIDS }), { kind: 'BAD_REQUEST' })
      await assert.rejects(bind({ uidBase: UID_START + 64 * UIDS }), { kind: 'BAD_REQUEST' })
      await assert.rejects(bind({ pid: 1 }), { kind: 'BAD_REQUEST' })
      await assert.rejects(bind({ pid: 4_000_000 }), { kind: 'NOT_FOUND' })
      for (const at of ['/proc', '/etc/x', '/..', 'usr', '/dev', '']) {
        const tree = [fields(cell).tree![0]!, { tree: 'usr', at, lower: [{ kind: 3 }] }]
        await assert.rejects(bind({ tree }), { kind: 'BAD_REQUEST' }, at)
      }
    })

    it('leaves the cell as it was when a bind fails', async () => {
      const cell = await newCell()
      await warden.request('BIND', fields(cell))
      const before = cell.mounts()
      const network = { veth: `${VETH}f`, address: `${NET}.9`, prefix: 24, gateway: `${NET}.1` }
      const bind = (change: BindFields) => warden.request('BIND', { ...fields(cell), ...change, network })
      await assert.rejects(bind({ layer: 'nobody' }), { kind: 'NOT_FOUND', stage: 'layer' })
      const tree = fields(cell, 'nothing').tree
      await assert.rejects(bind({ tree }), { kind: 'NOT_FOUND', stage: 'lower' })
      await assert.rejects(bind({ cgroup: 'nobody' }), { kind: 'NOT_FOUND', stage: 'cgroup' })
      assert.deepEqual(cell.mounts(), before)
      assert.deepEqual((await warden.request('VETH_LIST', {})).name, [])
      assert.ok(!existsSync(`/sys/class/net/${VETH}f`))
    })

    it('keeps the mounts of a killed cell only until the next mount of its layer', async () => {
      let wasKept = false
      // How soon it is looked at decides what is seen: within a second of the kill it is there.
      for (let attempt = 0; attempt < 10 && !wasKept; attempt++) {
        const cell = await newCell()
        await warden.request('BIND', fields(cell))
        const namespace = readlinkSync(`/proc/${cell.pid}/ns/mnt`)
        await warden.request('CGROUP_KILL', { cgroup: cell.name })
        wasKept = keptBy(warden.pid).includes(namespace)
        const next = await newCell()
        await warden.request('BIND', { ...fields(next), layer: cell.name })
        assert.ok(!keptBy(warden.pid).includes(namespace))
      }
      const { bavail, blocks } = statfsSync(dir)
      assert.equal(wasKept, bavail >= blocks / 8, 'where room is scarce it goes at once')
    })

    it('limits, measures, freezes and kills by cgroup', async () => {
      const cell = await newCell()
      await warden.request('BIND', fields(cell))
      const cgroup = cell.name
      const measured = async () => (await warden.request('CGROUP_STAT', { cgroup })).stat
      // The runtime's own threads may take a moment to go.
      while ((await measured())!.pids! > 1) await setTimeout(10)
      const stat = await measured()
      assert.equal(stat!.pids, 1)
      assert.equal(stat!.frozen, 0)
      assert.ok(stat!.memoryBytes! < 64 * MIB)
      await warden.request('CGROUP_LIMIT', { cgroup, limits: { memoryBytes: 32 * MIB, pids: 20 } })
      await warden.request('CGROUP_LIMIT', { cgroup, limits: { memoryBytes: 0, cpuMillis: 0, pids: 0 } })
      await warden.request('CGROUP_FREEZE', { cgroup, frozen: 1 })
      assert.equal((await warden.request('CGROUP_STAT', { cgroup })).stat!.frozen, 1)
      await assert.rejects(warden.request('CGROUP_DELETE', { cgroup }), { kind: 'BUSY' })
      await warden.request('CGROUP_KILL', { cgroup })
      assert.ok(
        !existsSync(`/proc/${cell.pid}/ns/mnt`) ||
          readFileSync(`/proc/${cell.pid}/stat`, 'utf8').includes(') Z'),
      )
      await warden.request('CGROUP_DELETE', { cgroup })
      await warden.request('CGROUP_DELETE', { cgroup })
      assert.ok(!(await warden.request('CGROUP_LIST', {})).name!.includes(cgroup))
      for (const name of ['CGROUP_KILL', 'CGROUP_STAT'] as const) {
        await assert.rejects(warden.request(name, { cgroup }), { kind: 'NOT_FOUND' })
      }
    })

    it('connects two sandboxes to the bridge that cannot reach each other', async () => {
      const [one, two] = [await newCell(), await newCell()]
      const network = (n: number) => ({
        veth: `${VETH}${n}`,
        address: `${NET}.${n}`,
        prefix: 24,
        gateway: `${NET}.1`,
      })
      await warden.request('BIND', { ...fields(one), network: network(11) })
      await warden.request('BIND', { ...fields(two), network: network(12) })
      assert.deepEqual((await warden.request('VETH_LIST', {})).name!.sort(), [`${VETH}11`, `${VETH}12`])
      const dial = async (cell: Cell, address: string) =>
        (await cell.exec(['/usr/bin/timeout', '1', '/bin/bash', '-c', `: < /dev/tcp/${address}/9`])).stderr
      assert.match(await dial(one, '127.0.0.1'), /refused/, 'loopback is up')
      assert.match(await dial(one, `${NET}.1`), /refused/, 'the gateway answers')
      assert.doesNotMatch(await dial(one, `${NET}.12`), /refused/, 'the neighbour does not')
      const inside = await sysctlsOf(two)
      assert.equal(inside, '0\n0\t65535\n1')
      await assert.rejects(warden.request('BIND', { ...fields(two), network: network(11) }), {
        kind: 'EXISTS',
      })
      await warden.request('BIND', { ...fields(two), network: network(12) }) // a second bind keeps its network
      await warden.request('VETH_DELETE', { veth: `${VETH}11` })
      await warden.request('VETH_DELETE', { veth: `${VETH}11` })
      assert.deepEqual((await warden.request('VETH_LIST', {})).name, [`${VETH}12`])
      await assert.rejects(warden.request('VETH_DELETE', { veth: 'lo' }), { kind: 'DENIED' })
      await assert.rejects(warden.request('VETH_DELETE', { veth: BRIDGE }), { kind: 'DENIED' })
    })

    it('binds many cells at once', async () => {
      const many = []
      for (let i = 0; i < 6; i++) many.push(await newCell())
      await Promise.all(many.map((cell) => warden.request('BIND', fields(cell))))
      for (const cell of many) assert.equal((await cell.sh('cat /etc/motd')).trim(), 'base')
    })
  })
}

async function sysctlsOf(cell: Cell): Promise<string> {
  const files = ['ipv4/ip_unprivileged_port_start', 'ipv4/ping_group_range', 'ipv6/conf/eth0/disable_ipv6']
  return (await cell.sh(`cat ${files.map((file) => `/proc/sys/net/${file}`).join(' ')}`)).trim()
}

function makeImages(images: string): void {
  for (const image of ['base', 'hostile', 'linked']) {
    const root = join(images, image, 'root')
    mkdirSync(join(root, 'etc'), { recursive: true })
    mkdirSync(join(root, 'lowdir'))
    writeFileSync(join(root, 'lowdir/inside'), 'inside\n')
    writeFileSync(join(root, 'etc/motd'), 'base\n')
    for (const name of ['bin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(root, name))
  }
  const outside = join(images, 'outside')
  writeFileSync(outside, 'kept')
  symlinkSync(outside, join(images, 'linked/root/etc/outside'))
  const hostile = join(images, 'hostile/root')
  symlinkSync('/etc', join(hostile, 'proc'))
  symlinkSync('../../../../../../../etc', join(hostile, 'dev'))
  writeFileSync(join(hostile, 'tmp'), 'a file')
  symlinkSync('nowhere', join(hostile, 'sys'))
  symlinkSync('/proc/self/root', join(hostile, '.islet'))
}

function groups(): string[] {
  const mounts = ['/sys/fs/cgroup', ...readdirSync('/sys/fs/cgroup').map((name) => `/sys/fs/cgroup/${name}`)]
  return mounts.map((mount) => join(mount, CGROUP)).filter((path) => existsSync(path))
}

/** What the children of the warden have open. */
function keptBy(warden: number): string[] {
  const children = readFileSync(`/proc/${warden}/task/${warden}/children`, 'utf8').split(' ').filter(Boolean)
  return children.flatMap((pid) => {
    try {
      return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
    } catch {
      return [] // a worker that has ended
    }
  })
}
