import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { mkdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import { needs } from '../../../../../tests/support/programs.ts'
import { type Instance, sweepDeadInstances } from '../../instance.ts'
import { tracesOf } from '../oci/traces.ts'
import { type Harness, openBox } from './harness.ts'

needs('ip')

const ON = { network: { enabled: true } }
interface LeftoversOptions {
  title: string
  /** The module that exports `open`, for a server in another process. */
  module: URL
  open: string
  /** Files that an interrupted start leaves below the run directory. */
  record: string
  skip: string | undefined
}

export async function leftovers({ title, module, open, record, skip }: LeftoversOptions): Promise<void> {
  const openHarness: () => Promise<Harness> = (await import(module.href))[open]
  describe(title, skip ? { skip } : {}, () => {
    it('is nothing of a destroyed sandbox', async () => {
      const harness = await openHarness()
      await harness.engine.start(new Map())
      await using _anchor = await openBox(harness, ON)
      const before = await tracesOf(harness.instance)
      const boxes = await Promise.all([openBox(harness, ON), openBox(harness, ON), openBox(harness)])
      await Promise.all(boxes.map((box) => box.print('(sleep 1000 &) > /dev/null 2>&1; mkdir -p /tmp/a')))
      await Promise.all(boxes.map((box) => box[Symbol.asyncDispose]()))
      assert.deepEqual((await tracesOf(harness.instance)).sort(), before.sort())
      await _anchor[Symbol.asyncDispose]()
      await harness.close()
      assert.deepEqual(await tracesOf(harness.instance), [])
      assert.equal(holdsSlot(harness.instance), false)
    })

    it('is nothing of what an earlier server left', async () => {
      const harness = await openHarness()
      const { instance } = harness
      await harness.engine.start(new Map())
      const box = await openBox(harness, ON)
      await box.link.close()
      const stray = await plant(instance, record)
      const engine = await harness.restart()
      assert.deepEqual(await engine.start(new Map()), new Set())
      assert.equal(await exit(stray), 'SIGKILL')
      const left = await tracesOf(instance)
      assert.deepEqual(
        left.filter(
          (trace) => !trace.endsWith(` ${instance.bridge}`) && !trace.endsWith(`/${instance.cgroup}`),
        ),
        [],
      )
      await harness.close()
      assert.deepEqual(await tracesOf(instance), [])
    })

    it('is nothing of an ephemeral server that was killed, its sandboxes, pool and data included', async () => {
      const program = `
      import { ${open} } from ${JSON.stringify(module.href)}
      import { openBox } from ${JSON.stringify(new URL('./harness.ts', import.meta.url).href)}
      const harness = await ${open}()
      await harness.engine.start(new Map())
      const box = await openBox(harness, { network: { enabled: true } })
      await harness.engine.freeze((await openBox(harness)).cell)
      const { release, ...instance } = harness.instance
      console.log(JSON.stringify(instance))
      setInterval(() => {}, 1e9)`
      const server = spawn(process.execPath, ['--input-type=module', '--eval', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let instance: Instance | undefined
      for await (const line of createInterface(server.stdout)) {
        instance = JSON.parse(line)
        break
      }
      assert.ok(instance)
      server.kill('SIGKILL')
      await exit(server)
      assert.notDeepEqual(await tracesOf(instance), [], 'sandboxes outlive their server')
      assert.ok((await sweepDeadInstances()).includes(instance.slot!))
      assert.deepEqual(await tracesOf(instance), [])
      assert.equal(existsSync(instance.dataDir), false)
      assert.equal(holdsSlot(instance), false)
    })
  })
}

/** One of each: a cgroup with a process, a veth, a cell's directory, a runtime's record. */
async function plant({ runDir, cgroup, bridge }: Instance, record: string): Promise<ChildProcess> {
  const stray = spawn('sleep', ['1000'], { stdio: 'ignore' })
  const mounts = await readFile('/proc/self/mountinfo', 'utf8')
  for (const [, at] of mounts.matchAll(/^(?:\S+ ){4}(\S+) .* - cgroup2? /gm)) {
    const group = join(at!, cgroup, 'stray')
    await mkdir(group, { recursive: true })
    // A new cpuset of v1 accepts no process.
    await writeFile(join(group, 'cgroup.procs'), String(stray.pid)).catch(() => {})
  }
  execFileSync('ip', ['link', 'add', `${bridge}v999`, 'type', 'veth', 'peer', 'name', `${bridge}p999`])
  execFileSync('ip', ['link', 'set', `${bridge}v999`, 'master', bridge])
  for (const name of ['s/stray/link', record])
    await mkdir(join(await realpath(runDir), name), { recursive: true })
  return stray
}

async function exit(child: ChildProcess): Promise<NodeJS.Signals | null> {
  if (child.signalCode !== null || child.exitCode !== null) return child.signalCode
  return new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
}

/** A released slot may belong to another server a moment later. */
function holdsSlot({ runDir, dataDir }: Instance): boolean {
  return globSync(join(runDir, 'owner.*.json')).some((path) => {
    try {
      return readFileSync(path, 'utf8').includes(`"${dataDir}"`)
    } catch {
      return false // it has gone again
    }
  })
}
