import assert from 'node:assert/strict'
import { Sandbox, type SandboxOpts } from 'islet/opencomputer'
import { until } from '../../coming-from/until.ts'
import { failsWith } from '../../support/shell.ts'
import type { Programs } from '../seeds.ts'
import type { World } from './world.ts'

export function sandboxPrograms({ sandbox, base, given, recordOf }: World): Programs {
  const { exec, files, pty } = sandbox
  return {
    'without options a sandbox runs base, with 300 seconds of idle time, at the server of the environment':
      async () => {
        const made = await Sandbox.create()
        const { runtime, timeouts, network } = await recordOf(made)
        assert.deepEqual([runtime, timeouts.idleMs, network.enabled], ['base', 300_000, true])
        await made.kill()
      },
    'a sandbox is created with a template, variables, metadata and limits, by the key and URL that are given':
      async () => {
        const opts: SandboxOpts = {
          ...given,
          template: 'host',
          timeout: 600,
          envs: { STAGE: 'test' },
          metadata: { team: 'blue' },
          cpuCount: 1,
          memoryMB: 512,
          network: false,
        }
        const made = await Sandbox.create(opts)
        const { runtime, timeouts, metadata, resources, network } = await recordOf(made)
        assert.deepEqual([runtime, timeouts.idleMs, metadata], ['host', 600_000, { team: 'blue' }])
        assert.deepEqual([resources.cpuMillis, resources.memoryBytes], [1000, 512 * 1024 * 1024])
        assert.equal(network.enabled, false)
        assert.equal((await made.exec.run('printf "$STAGE"')).stdout, 'test')
        await made.kill()
        await assert.rejects(Sandbox.create({ ...given, apiKey: 'wrong' }), {
          message: /^Failed to create sandbox: 401 /,
          code: 'unauthorized',
        })
        await assert.rejects(Sandbox.create({ template: 'no-such-template' }), {
          message: /^Failed to create sandbox: 404 runtime not found/,
          code: 'runtime_not_found',
        })
      },
    'more than 4 CPUs or 2048 MB are refused': async () => {
      await failsWith(Sandbox.create({ cpuCount: 5 }), 'limit_too_high')
      await failsWith(Sandbox.create({ memoryMB: 2049 }), 'limit_too_high')
      await failsWith(Sandbox.create({ memoryMB: -1 }), 'bad_request')
      await failsWith(Sandbox.create({ timeout: Number.NaN }), 'bad_request')
      await failsWith(Sandbox.create({ timout: 1 } as SandboxOpts), 'bad_request')
      const made = await Sandbox.create({ template: 'host', memoryMB: 2048 })
      assert.equal((await recordOf(made)).resources.memoryBytes, 2048 * 1024 * 1024)
      await made.kill()
    },
    'connect gives another handle of a sandbox': async () => {
      for (const opts of [undefined, given]) {
        const again = await Sandbox.connect(sandbox.sandboxId, opts)
        assert.equal((await again.exec.run('printf "$GREETING"')).stdout, 'hello')
      }
      const id = 'sbx-00000000000000000000'
      await assert.rejects(Sandbox.connect(id), {
        message: new RegExp(`^Failed to connect to sandbox ${id}: 404 sandbox not found`),
        code: 'sandbox_not_found',
      })
    },
    'a sandbox is created from a checkpoint, with an idle timeout of 300 seconds': async () => {
      const made = await Sandbox.createFromCheckpoint(base.id, {
        ...given,
        timeout: 60,
        envs: { MORE: 'more' },
      })
      assert.equal((await made.exec.run('printf "$GREETING $MORE "; cat base')).stdout, 'hello more base\n')
      assert.equal((await recordOf(made)).timeouts.idleMs, 60_000)
      const { id } = await made.createCheckpoint('of a sandbox with 60 seconds')
      await made.kill()
      const another = await Sandbox.createFromCheckpoint(id)
      assert.equal((await recordOf(another)).timeouts.idleMs, 300_000)
      await another.kill()
      await assert.rejects(Sandbox.createFromCheckpoint('ckp-00000000000000000000'), {
        message: /^Failed to create sandbox from checkpoint: 404 checkpoint not found/,
      })
    },
    'patches of a checkpoint are created, listed and deleted, and run in sandboxes made from it':
      async () => {
        const { patch } = await Sandbox.createCheckpointPatch(base.id, {
          ...given,
          script: 'echo patched >> base',
          description: 'adds a line',
        })
        const { id, sequence, createdAt, ...rest } = patch
        assert.deepEqual(rest, {
          checkpointId: base.id,
          script: 'echo patched >> base',
          description: 'adds a line',
          strategy: 'on_wake',
        })
        assert.ok(id && sequence === 1 && Date.parse(createdAt) > 0)
        const made = await Sandbox.createFromCheckpoint(base.id)
        assert.equal(await made.files.read('base'), 'base\npatched\n')
        const second = await Sandbox.createCheckpointPatch(base.id, { script: 'echo again >> base' })
        assert.equal(second.patch.description, '')
        assert.deepEqual(await Sandbox.listCheckpointPatches(base.id, given), [patch, second.patch])
        await made.hibernate()
        await made.wake()
        assert.equal(await made.files.read('base'), 'base\npatched\nagain\n')
        await made.kill()
        await Sandbox.deleteCheckpointPatch(base.id, id, given)
        await Sandbox.deleteCheckpointPatch(base.id, id)
        await Sandbox.deleteCheckpointPatch(base.id, second.patch.id)
        assert.deepEqual(await Sandbox.listCheckpointPatches(base.id), [])
        await failsWith(Sandbox.createCheckpointPatch(base.id, { script: '' }), 'bad_request')
      },
    'a killed sandbox is stopped and does not run': async () => {
      const made = await Sandbox.create({ template: 'host' })
      assert.equal(await made.isRunning(), true)
      await made.kill()
      await made.kill()
      assert.deepEqual([made.status, await made.isRunning()], ['stopped', false])
    },
    'a hibernated sandbox wakes, with 300 seconds of idle time or those that are given': async () => {
      const made = await Sandbox.create({ template: 'host', timeout: 900 })
      const session = await made.exec.start('sleep 600')
      await made.hibernate()
      assert.deepEqual([made.status, await made.isRunning()], ['hibernated', false])
      await made.wake()
      assert.deepEqual([made.status, (await recordOf(made)).timeouts.idleMs], ['running', 300_000])
      assert.equal(
        (await made.exec.list()).find(({ sessionID }) => sessionID === session.sessionId)?.running,
        true,
      )
      await made.hibernate()
      await made.wake({ timeout: 120 })
      assert.equal((await recordOf(made)).timeouts.idleMs, 120_000)
      await made.kill()
      await assert.rejects(made.wake(), { message: /^Failed to wake sandbox: 4\d\d / })
    },
    'setTimeout changes the idle timeout, in seconds': async () => {
      const made = await Sandbox.create({ template: 'host' })
      await made.setTimeout(900)
      assert.equal((await recordOf(made)).timeouts.idleMs, 900_000)
      await made.setTimeout(0)
      assert.equal((await recordOf(made)).timeouts.idleMs, 0)
      await failsWith(made.setTimeout(-1), 'bad_request')
      await made.setTimeout(1)
      await until(async () => !(await made.isRunning()))
      assert.equal(made.status, 'hibernated')
      await made.kill()
    },
    'checkpoints are created, listed, restored in place and deleted': async () => {
      const made = await Sandbox.createFromCheckpoint(base.id)
      const checkpoint = await made.createCheckpoint('before')
      const { id, sandboxId, name, status } = checkpoint
      assert.deepEqual([sandboxId, name, status], [made.sandboxId, 'before', 'ready'])
      assert.ok(Date.parse(checkpoint.createdAt) > 0 && checkpoint.sizeBytes !== undefined)
      await made.files.write('base', 'changed')
      await made.files.write('new', '')
      await made.restoreCheckpoint(id)
      assert.deepEqual([await made.files.read('base'), await made.files.exists('new')], ['base\n', false])
      await made.createCheckpoint('after')
      assert.deepEqual(
        (await made.listCheckpoints()).map(({ name }) => name),
        ['after', 'before'],
      )
      await assert.rejects(made.createCheckpoint('after'), {
        message: /^Failed to create checkpoint: 409 /,
        code: 'conflict',
      })
      await made.deleteCheckpoint(id)
      await made.deleteCheckpoint(id)
      assert.equal((await made.listCheckpoints()).length, 1)
      await assert.rejects(made.restoreCheckpoint(id), { message: /404 checkpoint not found/ })
      await made.kill()
    },
    'preview URLs lead to a port, ask for a token if they are told to, are listed and deleted': async () => {
      await exec.start('exec python3 -m http.server 8000 --bind 127.0.0.1', { cwd: '/tmp' })
      const open = await sandbox.createPreviewURL({ port: 8000 })
      assert.deepEqual([open.sandboxId, open.port, open.authConfig], [sandbox.sandboxId, 8000, {}])
      assert.equal(`http://${open.hostname}`, open.url)
      assert.deepEqual(
        [open.sslStatus, open.token, Date.parse(open.createdAt) > 0],
        ['none', undefined, true],
      )
      await until(async () => (await fetch(open.url)).status === 200)
      const closed = await sandbox.createPreviewURL({ port: 8000, authConfig: { type: 'token' } })
      assert.deepEqual([closed.id, closed.authConfig], [open.id, { type: 'token' }])
      assert.equal((await fetch(closed.url)).status, 401)
      const headers = { Authorization: `Bearer ${closed.token}` }
      assert.equal((await fetch(closed.url, { headers })).status, 200)
      const { token: _, ...listed } = closed
      assert.deepEqual(await sandbox.createPreviewURL({ port: 8000 }), listed)
      assert.deepEqual(await sandbox.listPreviewURLs(), [listed])
      const own = { scheme: 'bearer', token: 'a-token-of-my-own' }
      assert.equal((await sandbox.createPreviewURL({ port: 8000, authConfig: own })).token, own.token)
      await sandbox.deletePreviewURL(8000)
      await sandbox.deletePreviewURL(8000)
      assert.deepEqual(await sandbox.listPreviewURLs(), [])
      await failsWith(sandbox.createPreviewURL({ port: 0 }), 'bad_request')
      await failsWith(
        sandbox.createPreviewURL({ port: 8000, authConfig: { password: 'x' } }),
        'not_supported',
      )
    },
    'a preview URL has the domain that is given': async () => {
      const preview = await sandbox.createPreviewURL({ port: 8001, domain: 'app.example.com' })
      assert.equal(preview.customHostname, 'app.example.com')
      await sandbox.deletePreviewURL(8001)
    },
    'a sandbox has its id, its status and its parts': async () => {
      assert.match(sandbox.sandboxId, /^sbx-/)
      assert.equal(sandbox.status, 'running')
      assert.equal(sandbox.commands, sandbox.exec)
      assert.equal((await sandbox.commands.run('echo the same')).stdout, 'the same\n')
      assert.deepEqual(
        [typeof sandbox.agent.start, typeof files.read, typeof pty.create],
        Array(3).fill('function'),
      )
    },
  }
}
