import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { configurationPage } from '../test/support/configuration-page.ts'
import { ConfigError, type LoadOptions, loadConfig } from './config.ts'

const directory = mkdtempSync(join(tmpdir(), 'islet-config-'))
after(() => rmSync(directory, { recursive: true, force: true }))

function fileWith(content: unknown): string {
  const path = join(directory, 'settings.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

function problemsOf(options: Partial<LoadOptions>): readonly string[] {
  try {
    loadConfig({ env: {}, isRoot: true, ...options })
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.problems
  }
}

describe('loadConfig', () => {
  it('refuses a certificate without its key, and previews over http beside TLS', () => {
    for (const name of ['ISLET_TLS_CERT', 'ISLET_TLS_KEY'])
      assert.match(problemsOf({ env: { [name]: '/a' } })[0]!, /go together/)
    const env = {
      ISLET_TLS_CERT: '/a',
      ISLET_TLS_KEY: '/b',
      ISLET_PREVIEW_DOMAIN: 'http://preview.localhost',
    }
    assert.match(problemsOf({ env })[0]!, /https alone/)
    assert.deepEqual(problemsOf({ env: { ...env, ISLET_PREVIEW_DOMAIN: 'preview.localhost' } }), [])
  })

  it('has a default for all that needs one', () => {
    assert.deepEqual(loadConfig({ env: {}, isRoot: true }), {
      dataDir: '/var/lib/islet',
      host: '127.0.0.1',
      port: 7400,
      maxConnections: 'auto',
      corsOrigins: [],
      group: 'islet',
      engine: 'oci',
      isolation: 'namespace',
      runtimeBinary: 'auto',
      storage: 'auto',
      poolSizeBytes: 50 * 2 ** 30,
      outputKeepBytes: 16 * 1024 * 1024,
      outputSandboxBytes: 256 * 1024 * 1024,
      outputTotalBytes: 'auto',
      storeTotalBytes: 'auto',
      memoryTotalBytes: 'auto',
      diskReserveBytes: 'auto',
      logLevel: 'info',
      logFormat: 'json',
      networkAllow: [],
      dns: [],
      maxSandboxes: 1000,
      memoryCeiling: 'auto',
      cpuCeiling: 'auto',
      pidsCeiling: 'auto',
      warmMin: 'auto',
      warmMax: 128,
      defaultRuntime: 'base',
      imageDir: '/var/lib/islet/images',
      importDirs: [],
      maxMemoryBytes: 'auto',
      maxCpu: 'auto',
      maxPids: 'auto',
      maxDiskBytes: 'auto',
      drainTimeoutMs: 10_000,
    })
  })

  it('takes an empty ISLET_GROUP for nobody', () => {
    assert.equal(loadConfig({ env: { ISLET_GROUP: '' }, isRoot: true }).group, '')
    assert.equal(loadConfig({ env: { ISLET_GROUP: 'staff' }, isRoot: true }).group, 'staff')
    assert.match(
      problemsOf({ env: { ISLET_GROUP: '0' } })[0]!,
      /ISLET_GROUP is "0": it must be the name of a group/,
    )
  })

  it('logs text on a terminal, unless any setting says otherwise', () => {
    const formatOf = (options: Partial<LoadOptions>) =>
      loadConfig({ env: {}, isRoot: true, isTerminal: true, ...options }).logFormat
    assert.equal(formatOf({}), 'text')
    assert.equal(formatOf({ isTerminal: false }), 'json')
    assert.equal(formatOf({ file: fileWith({ logFormat: 'json' }) }), 'json')
    assert.equal(formatOf({ env: { ISLET_LOG_FORMAT: 'json' } }), 'json')
  })

  it('takes origins of pages as browsers write them', () => {
    const ISLET_CORS_ORIGINS = 'https://app.example.com, http://localhost:5173'
    const { corsOrigins } = loadConfig({ env: { ISLET_CORS_ORIGINS }, isRoot: true })
    assert.deepEqual(corsOrigins, ['https://app.example.com', 'http://localhost:5173'])
    for (const one of [
      '*',
      'app.example.com',
      'https://app.example.com/',
      'https://a.b:443',
      'file://x',
      'null',
    ])
      assert.equal(problemsOf({ env: { ISLET_CORS_ORIGINS: one } }).length, 1, one)
  })

  it('reads where previews are', () => {
    const read = (env: Record<string, string>) => loadConfig({ env, isRoot: true })
    assert.deepEqual(read({ ISLET_PREVIEW_PORTS: '20000-20999' }).previewPorts, { from: 20_000, to: 20_999 })
    const domain = (ISLET_PREVIEW_DOMAIN: string) => read({ ISLET_PREVIEW_DOMAIN }).previewDomain
    assert.deepEqual(domain('Preview.example.com'), {
      scheme: 'https',
      name: 'preview.example.com',
      port: undefined,
    })
    assert.deepEqual(domain('http://preview.localhost:7400/'), {
      scheme: 'http',
      name: 'preview.localhost',
      port: 7400,
    })
    for (const ISLET_PREVIEW_PORTS of ['20', '0-5', '5-4', '1-65536', 'a-b'])
      assert.equal(problemsOf({ env: { ISLET_PREVIEW_PORTS } }).length, 1, ISLET_PREVIEW_PORTS)
    for (const ISLET_PREVIEW_DOMAIN of [
      'a_b',
      'ftp://a.b',
      'https://a.b/path',
      '127.0.0.1',
      'a.b:0',
      '*.a.b',
    ])
      assert.equal(problemsOf({ env: { ISLET_PREVIEW_DOMAIN } }).length, 1, ISLET_PREVIEW_DOMAIN)
  })

  it("keeps a user's data where users keep data", () => {
    const dataDir = (env: Record<string, string>) => loadConfig({ env, isRoot: false }).dataDir
    assert.equal(dataDir({ HOME: '/home/ann' }), '/home/ann/.local/share/islet')
    assert.equal(dataDir({ HOME: '/home/ann', XDG_DATA_HOME: '/data' }), '/data/islet')
    assert.equal(dataDir({ HOME: '/home/ann', XDG_DATA_HOME: 'relative' }), '/home/ann/.local/share/islet')
  })

  it('lets the command line beat the environment, and that the file', () => {
    const file = fileWith({
      port: 1,
      host: '::1',
      maxSandboxes: 5,
      dns: ['1.1.1.1', '::1'],
      drainTimeout: '2s',
    })
    const config = loadConfig({ env: { ISLET_PORT: '2', ISLET_HOST: '' }, file, overrides: { port: 3 } })
    assert.deepEqual(
      [config.port, config.host, config.maxSandboxes, config.dns, config.drainTimeoutMs],
      [3, '::1', 5, ['1.1.1.1', '::1'], 2000],
    )
    assert.equal(loadConfig({ env: { ISLET_PORT: '2', ISLET_CONFIG: file } }).port, 2)
  })

  it('finds the config file in the data directory', () => {
    writeFileSync(join(directory, 'config.json'), '{"engine":"process"}')
    assert.equal(loadConfig({ env: { ISLET_DATA_DIR: directory } }).engine, 'process')
    rmSync(join(directory, 'config.json'))
  })

  it('reads sizes, durations and lists', () => {
    const config = loadConfig({
      env: {
        ISLET_POOL_SIZE: '2Gi',
        ISLET_DRAIN_TIMEOUT: '1m',
        ISLET_NETWORK_ALLOW: '10.1.0.0/16, fd00::/8',
        ISLET_PORT: '0',
      },
    })
    assert.equal(config.poolSizeBytes, 2 * 2 ** 30)
    assert.equal(config.drainTimeoutMs, 60_000)
    assert.deepEqual(config.networkAllow, ['10.1.0.0/16', 'fd00::/8'])
    assert.equal(config.port, 0)
  })

  it('names an unknown variable and the one that was meant', () => {
    assert.deepEqual(problemsOf({ env: { ISLET_PROT: '1' } }), [
      'ISLET_PROT is not a setting; did you mean ISLET_PORT?',
    ])
    assert.deepEqual(problemsOf({ env: { ISLET_QWERTYUIOP_ZXCV: '1' } }), [
      'ISLET_QWERTYUIOP_ZXCV is not a setting.',
    ])
  })

  it('names an unknown key of the file, also one that only the environment may set', () => {
    const problems = problemsOf({ file: fileWith({ maxSandbox: 1, apiKey: 'x', dataDir: '/x' }) })
    assert.equal(problems.length, 3)
    assert.match(problems[0]!, /"maxSandbox" in .* is not a setting; did you mean maxSandboxes\?/)
  })

  it('leaves the variables of clients, of tests and of other programs alone', () => {
    const env = { ISLET_URL: 'http://x', ISLET_API_KEY: 'k', ISLET_TEST_KEEP: '1', PATH: '/bin' }
    assert.equal(loadConfig({ env }).apiKey, 'k')
  })

  it('reports every problem at once', () => {
    const env = { ISLET_PORT: '70000', ISLET_ENGINE: 'docker', ISLET_DNS: '1.1.1.1,host', ISLET_X: '' }
    const problems = problemsOf({
      env,
      file: fileWith({ poolSize: 'big', host: true, networkAllow: '10.0.0.0/33' }),
    })
    assert.equal(problems.length, 7)
    const all = problems.join('\n')
    for (const part of [
      'ISLET_X ',
      'ISLET_PORT is "70000"',
      'one of oci, process',
      'ISLET_DNS',
      '"poolSize"',
      '10.0.0.0/33',
      '"host" in',
    ]) {
      assert.ok(all.includes(part), part)
    }
  })

  it('does not repeat a key that is not usable', () => {
    const problems = problemsOf({ env: { ISLET_API_KEY: 'sesame\0' } })
    assert.equal(problems.length, 1)
    assert.doesNotMatch(problems[0]!, /sesame/)
  })

  it('refuses a file that is missing, not JSON or not an object', () => {
    assert.match(problemsOf({ file: join(directory, 'none.json') })[0]!, /cannot be read/)
    assert.match(problemsOf({ file: fileWith('{') })[0]!, /cannot be read/)
    assert.match(problemsOf({ file: fileWith('[]') })[0]!, /JSON object/)
  })
})

describe('docs/reference/configuration.md', () => {
  it('is what the table says (UPDATE=1 rewrites it)', () => {
    const path = fileURLToPath(new URL('../../../docs/reference/configuration.md', import.meta.url))
    if (process.env.UPDATE) writeFileSync(path, configurationPage())
    assert.equal(readFileSync(path, 'utf8'), configurationPage())
  })
})
