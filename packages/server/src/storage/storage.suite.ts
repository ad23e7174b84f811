// What every way of keeping layers must do. storage.test.ts runs it over each of them.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { startCell } from '../warden/testing/cell.ts'
import { Warden, WardenError } from '../warden/warden.ts'
import { createStorage } from './layers.ts'
import { openPool, type Pool, type PoolMethod } from './pool.ts'
import type { Storage } from './storage.ts'

const run = promisify(execFile)
const MIB = 1024 ** 2
/** Of this run only, so that several can go side by side. */
const CGROUP = `isltest-storage-${process.pid}`

type Cell = Awaited<ReturnType<typeof startCell>>

/** What overlay itself makes of commands: each list of them in a layer over those before it, and lines of what is then there. */
const FLATTENED: { title: string; generations: string[]; holds: string[] }[] = [
  {
    title: 'files and directories that were removed, made anew and renamed',
    generations: [
      'mkdir /a /b /a/in; echo 1 > /a/one; echo 2 > /b/two; mv /lowdir /renamed; echo x > /renamed/new; ln /a/one /a/hard; chown 5:7 /b; mkdir /gone; rm -r /gone',
      'rm /lowfile; rm -r /b; mkdir /b; echo 3 > /b/three; mv /renamed/sub /renamed2; echo 4 > /renamed2/four; mv /a /c; rm /c/one; mkdir /renamed/sub; echo 5 > /renamed/sub/five; mkdir /lowdir',
    ],
    holds: ['./renamed2/file:base', './renamed2/four:4', './c/hard:1', './renamed/sub/five:5'],
  },
  {
    title: 'a directory that is moved on from one that was made anew',
    generations: [
      'mkdir -p /new /old/deep /x; echo 1 > /new/gone; echo 2 > /old/deep/two; echo 3 > /x/three',
      'rm -r /new; mkdir /new; mv /old /new/old; mv /lowdir /new/lowdir; mv /x /new/x',
      'mv /new/old /a; mv /new/lowdir/sub /b; mv /new/x /new/y',
      'mv /a/deep /c; mv /b /c/b; rm -r /a; mkdir /a; mv /c /a/c',
      'mv /a/c/b /d',
    ],
    holds: ['./a/c/two:2', './d/file:base', './new/y/three:3'],
  },
]

export interface StorageCase {
  title: string
  clone: 'btrfs' | 'reflink' | 'copy'
  diskLimit: boolean
  method: PoolMethod
  /** Makes the data directory and says how to undo that. */
  prepare(): Promise<{ dataDir: string; cleanUp(): Promise<void> }>
  uidStart: number
}

export function storageSuite(storageCase: StorageCase): void {
  describe(storageCase.title, () => {
    let dataDir: string
    let cleanUp: () => Promise<void>
    let pool: Pool
    let warden: Warden
    let storage: Storage
    const start = async () => {
      pool = await openPool({ dataDir, sizeBytes: 2048 * MIB, method: storageCase.method })
      const { uidStart } = storageCase
      const names = { bridge: 'isltest0', cgroup: CGROUP, runDir: join(dataDir, 'run') }
      warden = await Warden.start({ dataDir, ...names, uidStart, uidCount: 4, method: pool.method })
      storage = createStorage(warden, pool)
    }
    const layerDir = (layer: string) => join(pool.dir, 'layers', layer)
    const root = (layer: string) => join(layerDir(layer), 'root')

    before(async () => {
      ;({ dataDir, cleanUp } = await storageCase.prepare())
      await start()
    })
    after(async () => {
      await warden?.close()
      await storage?.close()
      await cleanUp?.()
      const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
      assert.ok(!mounts.includes(dataDir), 'a mount is left')
      assert.ok(
        !execFileSync('losetup', ['-a'], { encoding: 'utf8' }).includes(dataDir),
        'a loop device is left',
      )
      for (const hierarchy of readdirSync('/sys/fs/cgroup'))
        removeEmptyGroup(`/sys/fs/cgroup/${hierarchy}/${CGROUP}`)
      removeEmptyGroup(`/sys/fs/cgroup/${CGROUP}`)
    })

    it('declares how it clones and whether it limits', () => {
      assert.deepEqual(storage.capabilities, {
        clone: storageCase.clone,
        diskLimit: storageCase.diskLimit,
        stacks: true,
      })
    })

    it('creates, lists and deletes layers by name', async () => {
      await storage.create('first')
      await storage.create('second', { limitBytes: 64 * MIB })
      assert.deepEqual(await storage.list(), ['first', 'second'])
      await assert.rejects(storage.create('first'), { kind: 'EXISTS' })
      await storage.delete('first')
      await storage.delete('first')
      await storage.delete('second')
      assert.deepEqual(await storage.list(), [])
      assert.deepEqual(readdirSync(join(pool.dir, 'layers')), [])
    })

    it('refuses invalid names', async () => {
      for (const name of ['', '.', '..', 'a/b', '../x', '.tmp-1-1', 'A', '-a', 'a'.repeat(64), 'a\nb']) {
        await assert.rejects(storage.create(name), { kind: 'BAD_REQUEST' }, JSON.stringify(name))
      }
    })

    it('clones a difficult tree exactly', async () => {
      await storage.create('nasty')
      await growNastyTree(layerDir('nasty'))
      const { method } = await storage.clone('nasty', 'copy')
      assert.equal(method, storageCase.clone)
      assert.equal(await describeTree(root('copy')), await describeTree(root('nasty')))
      assert.equal(await inodeOf(`${root('copy')}/hard-a`), await inodeOf(`${root('copy')}/deep/hard-b`))
      assert.deepEqual(readdirSync(join(layerDir('copy'), 'root.work')), [], 'the work directory is emptied')
      const sparse = (await run('stat', ['-c', '%b', `${root('copy')}/sparse`])).stdout
      assert.ok(Number(sparse) * 512 < MIB, 'holes stay holes')
      await run('sh', ['-c', 'echo changed > "$0/plain"; rm -r "$0/many/d1"', root('copy')])
      assert.equal(readFileSync(`${root('nasty')}/plain`, 'utf8'), 'plain\n', 'the clone is independent')
      assert.ok(existsSync(`${root('nasty')}/many/d1/f1`))
      await assert.rejects(storage.clone('nasty', 'copy'), { kind: 'EXISTS' })
      await assert.rejects(storage.clone('nobody', 'other'), { kind: 'NOT_FOUND' })
      await storage.delete('copy')
      await storage.delete('nasty')
    })

    it('clones and deletes 5,000 files', async () => {
      await storage.create('large')
      const script =
        'cd "$0"; for d in $(seq 25); do mkdir d$d; (cd d$d; seq 200 | split -l 1 -a 3 - f); done'
      mkdirSync(root('large'))
      await run('sh', ['-c', script, root('large')])
      const { durationMs } = await storage.clone('large', 'large-clone', { readOnly: true })
      console.log(`# ${storageCase.title}: clone of 5,000 files took ${durationMs.toFixed(1)} ms`)
      assert.equal(readdirSync(root('large-clone')).length, 25)
      assert.ok((await storage.usageBytes('large-clone')) > 0)
      await Promise.all([storage.delete('large'), storage.delete('large-clone')])
      assert.deepEqual(await storage.list(), [])
    })

    it('answers other requests while a long one runs', async () => {
      await storage.create('busy')
      const clones = Array.from({ length: 12 }, (_, i) => storage.clone('busy', `busy-${i}`))
      assert.ok((await storage.list()).includes('busy'))
      await Promise.all(clones)
      assert.equal((await storage.list()).length, 13)
      await Promise.all((await storage.list()).map((layer) => storage.delete(layer)))
    })

    it('reports what a layer uses', async () => {
      await storage.create('used')
      mkdirSync(root('used'))
      writeFileSync(`${root('used')}/data`, Buffer.alloc(3 * MIB, 1))
      await run('sync', ['-f', root('used')])
      const bytes = await storage.usageBytes('used')
      assert.ok(bytes >= 3 * MIB && bytes < 4 * MIB, `${bytes}`)
      await assert.rejects(storage.usageBytes('nobody'), { kind: 'NOT_FOUND' })
      await storage.delete('used')
    })

    it('enforces a limit inside a sandbox exactly when it says so', async () => {
      await storage.create('small', { limitBytes: 8 * MIB })
      await usingCell(dataDir, warden, storageCase.uidStart, 'small', async (sh) => {
        const fill = 'dd if=/dev/zero of=/fill bs=1048576 count=32 conv=fsync 2>&1'
        const first = await sh.exec(['/bin/sh', '-c', fill])
        assert.equal(first.code !== 0, storageCase.diskLimit, first.stdout)
        if (!storageCase.diskLimit) return
        assert.match(first.stdout, /[Qq]uota|No space/)
        await storage.setLimit('small', undefined)
        await sh.sh(fill)
      })
      await storage.delete('small')
    })

    for (const { title, generations, holds } of FLATTENED) {
      it(`flattens layers into one that means the same: ${title}`, async () => {
        const listing = 'cd /; find . -path ./usr -prune -o -xdev -printf "%P %y %m %U %G %l\\n" | sort'
        const content = 'find . -path ./usr -prune -o -xdev -type f -exec grep -H "" {} + | sort'
        const inside = async (layer: string, lowers: string[], script: string) => {
          let said = ''
          await storage.create(layer)
          const run = async (sh: Cell) => {
            said = await sh.sh(script)
          }
          await usingCell(dataDir, warden, storageCase.uidStart, layer, run, lowers)
          return said
        }
        const stack: string[] = []
        for (const [i, script] of generations.entries()) {
          await inside(`generation-${i}`, stack, script)
          stack.unshift(`generation-${i}`)
        }
        const stacked = await inside('top', stack, `${listing}; ${content}`)
        for (const line of holds) assert.ok(stacked.split('\n').includes(line), `${line} in\n${stacked}`)
        // All of them, and some over the others.
        for (const count of new Set([stack.length, 2])) {
          await storage.flatten(stack.slice(0, count), 'flat')
          assert.ok(existsSync(join(layerDir('flat'), 'usr')), 'every tree is flattened')
          const lowers = ['flat', ...stack.slice(count)]
          assert.equal(
            await inside('flat-top', lowers, `${listing}; ${content}`),
            stacked,
            `the upper ${count}`,
          )
          await storage.delete('flat-top')
          await storage.delete('flat')
        }
        await assert.rejects(storage.flatten([stack[0]!, 'nobody'], 'other'), { kind: 'NOT_FOUND' })
        for (const layer of ['top', ...stack]) await storage.delete(layer)
        assert.deepEqual(await storage.list(), [])
      })
    }

    it('flattens a directory with very many entries in little memory', async () => {
      for (const layer of ['wide', 'under']) {
        await storage.create(layer)
        mkdirSync(root(layer))
      }
      for (let i = 0; i < 10_000; i++) mkdirSync(`${root('wide')}/${i}`)
      const limit = (bytes: string) => run('prlimit', ['--pid', `${warden.pid}`, `--as=${bytes}`])
      await limit(`${64 * MIB}:`)
      await storage.flatten(['wide', 'under'], 'wide-flat')
      await limit('unlimited:')
      assert.equal(readdirSync(root('wide-flat')).length, 10_000)
      for (const layer of ['wide', 'under', 'wide-flat']) await storage.delete(layer)
    })

    it('removes what a killed warden left half-made, and takes over its pool', async () => {
      await storage.create('kept')
      mkdirSync(root('kept'))
      writeFileSync(`${root('kept')}/file`, 'kept')
      const half = join(pool.dir, 'layers', '.tmp-1-0')
      mkdirSync(join(half, 'root'), { recursive: true })
      const pending = storage.clone('kept', 'cut').catch((error: WardenError) => error)
      process.kill(warden.pid, 'SIGKILL')
      assert.match(await warden.exited, /SIGKILL/)
      const outcome = await pending
      if (outcome instanceof WardenError) assert.equal(outcome.kind, 'EXITED')
      await assert.rejects(storage.list(), { kind: 'EXITED' })
      await start() // the pool is still mounted: adopted
      assert.ok(!existsSync(half))
      assert.deepEqual(
        readdirSync(join(pool.dir, 'layers')).filter((name) => name.startsWith('.')),
        [],
      )
      assert.equal(readFileSync(`${root('kept')}/file`, 'utf8'), 'kept')
      for (const layer of await storage.list()) await storage.delete(layer)
    })

    it('finds its layers again after a close', async () => {
      await storage.create('again')
      await warden.close()
      await storage.close()
      await storage.close()
      assert.equal(await warden.exited, 'the warden ended with code 0')
      await start()
      assert.deepEqual(await storage.list(), ['again'])
      await storage.delete('again')
    })
  })
}

/** A cell whose root is the layer over a small image with the host's /usr. */
async function usingCell(
  dataDir: string,
  warden: Warden,
  uidBase: number,
  layer: string,
  use: (cell: Cell) => Promise<void>,
  lowers: string[] = [],
): Promise<void> {
  const image = join(dataDir, 'images/base/root')
  mkdirSync(join(image, 'lowdir/sub'), { recursive: true })
  writeFileSync(join(image, 'lowdir/sub/file'), 'base\n')
  writeFileSync(join(image, 'lowfile'), 'base\n')
  await run('sh', ['-c', 'cd "$0"; for l in bin lib lib64; do ln -sfn usr/$l $l; done', image])
  const cell = await startCell(dataDir, `cell-${layer}`, CGROUP, uidBase)
  try {
    const lower = [
      ...lowers.map((name) => ({ kind: 1, name, tree: 'root' })),
      { kind: 2, name: 'base', tree: 'root' },
    ]
    const tree = [
      { tree: 'root', at: '/', lower },
      { tree: 'usr', at: '/usr', lower: [{ kind: 3 }] },
    ]
    await warden.request('BIND', { pid: cell.pid, uidBase, layer, tree })
    await use(cell)
  } finally {
    await cell.close()
    await warden.request('CGROUP_DELETE', { cgroup: cell.name })
  }
}

async function growNastyTree(layer: string): Promise<void> {
  const script = `set -e; cd "$0"; mkdir -p root root.work/work; echo left > root.work/work/left; cd root
    echo plain > plain; mkdir deep empty many; echo h > hard-a; ln hard-a deep/hard-b
    cp /bin/true setuid; chmod 4755 setuid; chown 1000:1000 plain; mkdir sticky; chmod 1777 sticky
    truncate -s 64M sparse; printf x | dd of=sparse bs=1 seek=1M conv=notrunc 2>/dev/null
    mknod whiteout c 0 0; mknod fifo p; ln -s /nowhere link; ln -s "$(printf 'x%.0s' $(seq 1000))" long-link
    touch "$(printf 'new\\nline')" 'späß ☃' ' space' -- -dash; touch -d '2001-02-03 04:05:06.123456789' plain
    for d in 1 2 3; do mkdir many/d$d; for f in $(seq 50); do echo $f > many/d$d/f$f; done; done
    if command -v setfattr > /dev/null; then
      setfattr -n user.note -v hello plain; setfattr -n trusted.overlay.opaque -v y empty
      setfattr -n trusted.overlay.redirect -v /other deep
    else echo 'no setfattr: xattrs are not compared'; fi
    touch -d '2002-02-02 02:02:02.222222222' deep/hard-b empty`
  await run('bash', ['-c', script, layer])
  // Deeper than a path can be long: 40 directories of 200 bytes.
  await run('bash', [
    '-c',
    `cd "$0/root/deep"; n=$(printf 'n%.0s' $(seq 200)); for i in $(seq 40); do mkdir $n; cd -P $n; done; echo end > end`,
    layer,
  ])
}

/** Everything about a tree that a copy must keep, as text. */
async function describeTree(dir: string): Promise<string> {
  const script = `cd "$0"; find . -type d -printf '%P %y %m %U %G %T@\\0' -o -printf '%P %y %m %U %G %s %T@ %n %l\\0' | sort -z | tr '\\0' '\\n'
    find . -type f -execdir sha256sum {} + | sort
    if command -v getfattr > /dev/null; then getfattr -h -d -m - -- plain empty deep setuid link; fi`
  return (await run('bash', ['-c', script, dir], { maxBuffer: 64 * MIB })).stdout
}

async function inodeOf(path: string): Promise<string> {
  return (await run('stat', ['-c', '%i', path])).stdout
}

function removeEmptyGroup(path: string): void {
  if (existsSync(path)) rmdirSync(path)
}
