// Processes that end while the server's disk, a small one here, is full.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  globSync,
  mkdtempSync,
  openSync,
  rmdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { ProcessInfo } from '@islet/contract'
import { until } from '../coming-from/until.ts'
import { TestServer } from '../support/server.ts'

test('a command that ends on a full disk has ended for everybody, and is recorded when there is room', async () => {
  const disk = mkdtempSync(join(tmpdir(), 'islet-full-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'islet-test', disk])
  const { TMPDIR } = process.env
  try {
    process.env.TMPDIR = disk
    await using server = await TestServer.start({ env: { ISLET_ENGINE: 'process' } })
    const { id } = await server.islet().sandboxes.create()
    const processes = `/v1/sandboxes/${id}/processes`
    const look = async (path = '') => (await server.fetch(`${processes}${path}`)).json()
    const started = (await (
      await server.post(processes, { command: 'until test -e go; do sleep 0.01; done; exit 7' })
    ).json()) as ProcessInfo
    const filler = join(disk, 'filler')
    try {
      fill(filler)
      // The server's own reserve is used up too.
      rmSync(join(server.dataDir, 'ballast'))
      fill(`${filler}-2`)
      // A name and no content: there is room for that.
      writeFileSync(join(globSync(join(server.dataDir, 'workspaces/*'))[0]!, 'go'), '')
      await until(async () => ((await look(`/${started.id}`)) as ProcessInfo).status === 'exited')
      assert.equal(((await look(`/${started.id}`)) as ProcessInfo).result?.exitCode, 7)
      await until(() => server.output.includes('is not recorded yet'))
    } finally {
      for (const path of globSync(`${filler}*`)) rmSync(path)
    }
    await until(async () => {
      const { processes: running } = (await look('?status=running')) as { processes: ProcessInfo[] }
      return running.length === 0
    })
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
    execFileSync('umount', [disk])
    rmdirSync(disk)
  }
})

function fill(path: string): void {
  const file = openSync(path, 'w')
  try {
    for (const size of [1 << 20, 4096]) {
      try {
        for (;;) writeSync(file, Buffer.alloc(size))
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
      }
    }
  } finally {
    closeSync(file)
  }
}
