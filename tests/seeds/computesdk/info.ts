import assert from 'node:assert/strict'
import { compute } from 'islet/computesdk'
import { until } from '../../coming-from/until.ts'
import { failsWith } from '../../support/shell.ts'
import type { Programs } from '../seeds.ts'
import { answering, type World } from './world.ts'

export function infoPrograms({ sandbox, islet }: World): Programs {
  return {
    'getInfo says what and how a sandbox is': async () => {
      const made = await compute.sandbox.create({
        templateId: 'host',
        metadata: { team: 'blue' },
        timeout: 600_000,
      })
      const { createdAt, ...info } = await made.getInfo()
      assert.deepEqual(info, {
        id: made.sandboxId,
        provider: 'islet',
        runtime: 'node',
        status: 'running',
        timeout: 600_000,
        metadata: { team: 'blue' },
      })
      assert.ok(createdAt instanceof Date && createdAt.toISOString() > '2020')
      const native = await islet.sandboxes.connect(made.sandboxId)
      await native.hibernate()
      assert.equal((await made.getInfo()).status, 'running')
      assert.equal(native.status, 'hibernated')
      assert.equal((await made.runCommand('echo woken')).stdout, 'woken\n')
      await made.destroy()
      await made.destroy()
      assert.equal((await made.getInfo()).status, 'stopped')
    },
    'getUrl gives the URL of a port, in the protocol of the server': async () => {
      const url = await sandbox.getUrl({ port: 3000 })
      assert.match(url, /^http:\/\//)
      assert.equal(await sandbox.getUrl({ port: 3000, protocol: 'http' }), url)
      assert.notEqual(await sandbox.getUrl({ port: 8080 }), url)
      await failsWith(sandbox.getUrl({ port: 3000, protocol: 'https' }), 'not_supported')
      await failsWith(sandbox.getUrl({ port: 70_000 }), 'bad_request')
    },
    'a URL answers once its server runs': async () => {
      const url = await sandbox.getUrl({ port: 3910 })
      assert.equal((await fetch(url)).status, 502)
      await sandbox.runCommand(answering('ready'), { background: true, env: { PORT: '3910' } })
      await until(async () => (await fetch(url)).ok)
      assert.equal(await (await fetch(url)).text(), 'ready')
    },
  }
}
