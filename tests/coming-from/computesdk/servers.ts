import assert from 'node:assert/strict'
import type { Sandbox } from 'islet'
import { failsWith } from '../../support/shell.ts'
import type { Rows } from '../rows.ts'
import { until } from '../until.ts'

const PYTHON_SERVER = 'exec python3 -m http.server "$PORT" --bind 127.0.0.1'

export function serverRows(sandbox: Sandbox): Rows {
  const { files, service } = sandbox
  const run = (command: string) => sandbox.runCommand(command)
  return {
    'server.start(options)': async () => {
      await run('mkdir -p /tmp/web; echo GREETING=hi > /tmp/web/.env')
      const started = await service.start({
        name: 'web',
        install: 'touch installed',
        start: `echo "$GREETING $MODE" > page; ${PYTHON_SERVER}`,
        path: '/tmp/web',
        envFile: '.env',
        environment: { MODE: 'test' },
        port: 3000,
        restartPolicy: 'always',
        maxRestarts: 3,
        restartDelay: 100,
        stopTimeout: '5s',
        healthCheck: { path: '/', interval: 100, timeout: '2s' },
      })
      assert.ok(['installing', 'starting'].includes(started.status))
      await until(async () => (await service.retrieve('web')).status === 'ready')
      const { url, port, healthy, pid } = await service.retrieve('web')
      assert.deepEqual([port, healthy, typeof pid], [3000, true, 'number'])
      assert.equal(await (await fetch(`${url}/page`)).text(), 'hi test\n')
      assert.equal(await files.exists('/tmp/web/installed'), true)
      await failsWith(service.start({ name: 'web', start: 'true' }), 'conflict')
    },
    'server.list()': async () => {
      assert.deepEqual(
        (await service.list()).map(({ name }) => name),
        ['web'],
      )
    },
    'server.retrieve(slug)': async () => {
      const { processId, restartPolicy } = await service.retrieve('web')
      assert.equal(restartPolicy, 'always')
      assert.equal((await sandbox.exec.get(processId!)).service, 'web')
      await failsWith(service.retrieve('other'), 'service_not_found')
    },
    'server.stop(slug)': async () => {
      await service.stop('web')
      assert.equal((await service.retrieve('web')).status, 'stopped')
    },
    'server.restart(slug)': async () => {
      const { pid: before } = await service.retrieve('web')
      await service.restart('web')
      await until(async () => (await service.retrieve('web')).status === 'ready')
      assert.notEqual((await service.retrieve('web')).pid, before)
    },
    'server.delete(slug)': async () => {
      await service.delete('web')
      assert.deepEqual(await service.list(), [])
    },
  }
}
