import assert from 'node:assert/strict'
import type { ServerInfo } from 'islet/computesdk'
import { until } from '../../coming-from/until.ts'
import { failsWith } from '../../support/shell.ts'
import type { Programs } from '../seeds.ts'
import { answering, type World } from './world.ts'

export function serverPrograms({ sandbox }: World): Programs {
  const { server, filesystem } = sandbox
  const becomes = async (slug: string, ...statuses: ServerInfo['status'][]): Promise<ServerInfo> => {
    await until(async () => statuses.includes((await server.retrieve(slug)).status))
    return server.retrieve(slug)
  }
  const text = async ({ url }: ServerInfo) => (await fetch(url!)).text()
  return {
    'a server has a slug and a command': async () => {
      assert.deepEqual(await server.list(), [])
      const started = await server.start({ slug: 'api', start: 'npm start', path: '/app', port: 3000 })
      assert.deepEqual([started.slug, started.start, started.status], ['api', 'npm start', 'starting'])
      const ready = await becomes('api', 'ready')
      assert.equal(await text(ready), 'none dev')
      await failsWith(server.start({ slug: 'none' } as never), 'bad_request')
      await failsWith(server.start({ slug: 'two', start: 'one', command: 'another' }), 'bad_request')
      await failsWith(server.start({ slug: 'Not a slug', start: 'true' }), 'bad_request')
      await failsWith(
        server.start({ slug: 'x', start: 'true', restartPolicy: 'always' } as never),
        'bad_request',
      )
    },
    'a slug is taken while its server runs': async () => {
      await failsWith(server.start({ slug: 'api', start: 'npm start' }), 'conflict')
    },
    'a port that is taken is another one, or a failure': async () => {
      const start = answering('moved')
      await server.start({ slug: 'moved', start, port: 3000 })
      const moved = await becomes('moved', 'ready')
      assert.notEqual(moved.port, 3000)
      assert.equal(await text(moved), 'moved')
      const strict = await server
        .start({ slug: 'strict', start, port: 3000, strict_port: true })
        .catch((error) => error)
      if (strict instanceof Error) assert.equal((strict as Error & { code?: string }).code, 'port_taken')
      else assert.equal((await becomes('strict', 'failed', 'ready')).status, 'failed')
      await server.delete('moved')
      await server.delete('strict').catch(() => {})
    },
    'servers are listed and retrieved': async () => {
      const [api, ...others] = await server.list()
      assert.deepEqual([api?.slug, api?.command, others], ['api', 'npm start', []])
      const info = await server.retrieve('api')
      assert.deepEqual([info.status, info.url?.startsWith('http'), info.port], ['ready', true, 3000])
      assert.deepEqual([typeof info.pid, typeof info.terminal_id], ['number', 'string'])
      await failsWith(server.retrieve('other'), 'service_not_found')
    },
    'a stopped server is started again with another command': async () => {
      await server.stop('api')
      assert.equal((await server.retrieve('api')).status, 'stopped')
      const again = await server.start({ slug: 'api', command: 'npm run prod', path: '/app', port: 3000 })
      assert.deepEqual([again.start, again.command], ['npm run prod', 'npm run prod'])
      assert.equal(await text(await becomes('api', 'ready')), 'none prod')
    },
    'a server is restarted, with another process': async () => {
      const before = await server.retrieve('api')
      const restarted = await server.restart('api')
      assert.equal(restarted.slug, 'api')
      const after = await becomes('api', 'ready')
      assert.notEqual(after.pid, before.pid)
      await server.delete('api')
      await failsWith(server.restart('api'), 'service_not_found')
    },
    'an install command runs first, in the directory of the server': async () => {
      const install = 'until [ -e /tmp/may-install ]; do sleep 0.05; done; npm install && pwd > installed'
      const started = await server.start({
        slug: 'web',
        install,
        start: 'npm run dev',
        path: '/app',
        port: 3001,
      })
      assert.deepEqual([started.status, started.install, started.path], ['installing', install, '/app'])
      await filesystem.writeFile('/tmp/may-install', '')
      await becomes('web', 'ready')
      assert.equal(await filesystem.readFile('/app/installed'), '/app\n')
      await server.delete('web')
    },
    'a server is restarted by its policy, as often as it may be': async () => {
      const count = 'echo x >> "$0.count"; exit 1'
      const options = { path: '/tmp', max_restarts: 2, restart_delay_ms: 50 }
      await server.start({ ...options, slug: 'once', start: `sh -c '${count}' /tmp/once` })
      await server.start({
        ...options,
        slug: 'again',
        start: `sh -c '${count}' /tmp/again`,
        restart_policy: 'on-failure',
      })
      const ended = {
        ...options,
        start: "sh -c 'echo x >> /tmp/always.count'",
        restart_policy: 'always',
      } as const
      await server.start({ ...ended, slug: 'always' })
      for (const [slug, restarts] of Object.entries({ once: 0, again: 2, always: 2 })) {
        const { restart_count, restart_policy } = await becomes(slug, 'failed', 'stopped')
        assert.deepEqual(
          [restart_count, restart_policy],
          [restarts, { once: 'never', again: 'on-failure', always: 'always' }[slug]],
          slug,
        )
        assert.equal((await filesystem.readFile(`/tmp/${slug}.count`)).length, 2 * (restarts + 1), slug)
        await server.delete(slug)
      }
    },
    'a server is ready when its health check passes': async () => {
      const start = `node -e '
        const healthy = () => require("fs").existsSync("/tmp/healthy")
        require("http").createServer((request, answer) => answer.writeHead(request.url === "/health" && healthy() ? 200 : 503).end())
          .listen(process.env.PORT)'`
      const health_check = { path: '/health', interval_ms: 100, timeout_ms: 3000, delay_ms: 10 }
      await server.start({ slug: 'web', start, port: 3002, health_check })
      const waiting = await becomes('web', 'running')
      assert.notEqual(waiting.healthy, true)
      await filesystem.writeFile('/tmp/healthy', '')
      const ready = await becomes('web', 'ready')
      assert.deepEqual([ready.healthy, typeof ready.health_status], [true, 'string'])
      await server.delete('web')
      const unknown = { slug: 'web', start, health_check: { path: '/', interval: 5 } } as never
      await failsWith(server.start(unknown), 'bad_request')
    },
    'a server gets the variables of a file and its own': async () => {
      await filesystem.writeFile('/app/.env.production', 'FROM_FILE=file\nBOTH=file\n')
      await server.start({
        slug: 'api',
        start: 'env > variables; sleep 600',
        path: '/app',
        env_file: '.env.production',
        environment: { BOTH: 'inline' },
      })
      await until(() => filesystem.exists('/app/variables'))
      await until(async () => /^FROM_FILE=file$/m.test(await filesystem.readFile('/app/variables')))
      assert.match(await filesystem.readFile('/app/variables'), /^BOTH=inline$/m)
      await server.delete('api')
    },
    'all options together make a server that is ready': async () => {
      await filesystem.writeFile('/app/.env', 'DEBUG=false\n')
      await server.start({
        slug: 'fullstack',
        install: 'npm install',
        start: 'npm run dev',
        path: '/app',
        env_file: '.env',
        port: 3003,
        strict_port: true,
        autostart: true,
        environment: { NODE_ENV: 'development', DEBUG: 'true' },
        restart_policy: 'always',
        stop_timeout_ms: 15_000,
        health_check: { path: '/', interval_ms: 200 },
      })
      const { url, pid, terminal_id, created_at, updated_at, ...info } = await becomes('fullstack', 'ready')
      assert.deepEqual(info, {
        slug: 'fullstack',
        start: 'npm run dev',
        command: 'npm run dev',
        install: 'npm install',
        path: '/app',
        original_path: '/app',
        env_file: '.env',
        environment: { NODE_ENV: 'development', DEBUG: 'true' },
        port: 3003,
        status: 'ready',
        autostart: true,
        restart_policy: 'always',
        max_restarts: 0,
        restart_count: 0,
        healthy: true,
        health_status: info.health_status,
      })
      assert.equal(await (await fetch(url!)).text(), 'development dev')
      assert.ok(pid! > 0 && terminal_id && created_at <= updated_at && info.health_status)
      await server.stop('fullstack')
      await server.delete('fullstack')
      assert.deepEqual(await server.list(), [])
    },
    'a failed server is restarted': async () => {
      await server.start({ slug: 'backend', start: '[ -e /tmp/may-run ] || exit 1; sleep 600' })
      assert.equal((await becomes('backend', 'failed')).status, 'failed')
      await filesystem.writeFile('/tmp/may-run', '')
      await server.restart('backend')
      await becomes('backend', 'running', 'ready')
      await server.delete('backend')
    },
  }
}
