// One small use of the SDK, as text for every runtime: create, a command, a streamed one, files, an attached session over a WebSocket, and the end.

export const USE = `
async function use({ Sandbox, hasCode }, options) {
  const told = []
  const sandbox = await Sandbox.create({ runtime: 'host', ...options })
  const { stdout } = await sandbox.exec.run('echo $((6*7))')
  told.push(stdout.trim())
  const streamed = async function* () { yield new TextEncoder().encode('streamed') }
  const files = [{ path: 'blob', content: new Blob(['bytes, ']) }, { path: 'stream', content: streamed() }]
  told.push((await sandbox.exec.run('cat blob stream', { files })).stdout)
  const printed = []
  const { exitCode } = await sandbox.exec.run('cat; echo "ürr" >&2; exit 5', {
    stdin: new Blob(['in ']).stream(),
    stdout: new WritableStream({ write: (data) => void printed.push(new TextDecoder().decode(data)) }),
    onStderr: (data) => void printed.push(new TextDecoder().decode(data)),
  })
  told.push(printed.sort().join(''), exitCode)
  const aborted = sandbox.exec.run('sleep 600', { onStdout() {}, signal: AbortSignal.timeout(50) })
  told.push((await aborted.catch((error) => error)).name)
  await sandbox.files.write('note.txt', 'written')
  told.push(await sandbox.files.read('note.txt'))
  const decoder = new TextDecoder()
  const session = await sandbox.exec.start('read line; echo "heard $line"; exit 3', {
    onStdout: (data) => void told.push(decoder.decode(data).trim()),
  })
  await session.sendStdin('you\\n')
  told.push(await session.done)
  await sandbox.kill()
  told.push(await sandbox.isRunning())
  const error = await sandbox.exec.run('true').catch((error) => error)
  told.push(hasCode(error, 'invalid_state') ? 'gone' : String(error))
  return JSON.stringify(told)
}
`
export const TOLD = JSON.stringify([
  '42',
  'bytes, streamed',
  'in ürr\n',
  5,
  'AbortError',
  'written',
  'heard you',
  3,
  false,
  'gone',
])

const USE_DIALECTS = `
async function use({ Sandbox }, { compute }) {
  const one = await Sandbox.create({ template: 'host', envs: { WORD: 'first' }, memoryMB: 256 })
  const other = await compute.sandbox.create({ templateId: 'host', envs: { WORD: 'second' } })
  const told = [(await one.exec.run('echo $WORD')).stdout, (await other.runCommand('echo $WORD')).stdout]
  told.push(await other.filesystem.readFile('/nonexistent').catch((error) => error.message))
  await one.kill()
  await other.destroy()
  return JSON.stringify(told)
}
`
export const DIALECTS_TOLD = JSON.stringify(['first\n', 'second\n', 'File not found: /nonexistent'])

/** Programs for Node, Bun and Deno: the settings come from the environment. */
export const PROGRAMS = {
  'use.cjs': `const sdk = require('@islet/sdk')\n${USE}\nuse(sdk).then(console.log)\n`,
  'use.mjs': `import * as sdk from '@islet/sdk'\n${USE}\nconsole.log(await use(sdk))\n`,
  // One dialect of each package: `islet` is only an ES module.
  'dialects.mjs': `import * as one from '@islet/dialects/opencomputer'\nimport * as other from 'islet/computesdk'\n${USE_DIALECTS}\nconsole.log(await use(one, other))\n`,
  'dialects.cjs': `const one = require('@islet/dialects/opencomputer')\nconst other = require('@islet/dialects/computesdk')\n${USE_DIALECTS}\nuse(one, other).then(console.log)\n`,
}

/** For a page, which has no environment. */
export const PAGE_MODULE = `import * as sdk from '@islet/sdk'\n${USE}\nglobalThis.use = (options) => use(sdk, options)\n`

/** Code that a compiler must accept, and code that it must refuse: types that are `any` would accept everything. */
export function typed(from: string): string {
  return `import { hasCode, IsletError, Sandbox, type ExecResult, type SandboxInfo } from '${from}'

export async function main(): Promise<ExecResult> {
  const sandbox = await Sandbox.create({ resources: { memory: '512Mi' }, timeout: { idle: '5m', onIdle: 'kill' } })
  const info: SandboxInfo = await sandbox.getInfo()
  const name: string | null = info.name
  // @ts-expect-error a number is no command
  sandbox.exec.run(5).catch((error: unknown) => hasCode(error, 'bad_request') && error.hint)
  // @ts-expect-error there is no such state
  if (info.status === 'flying') throw new IsletError('conflict', name ?? undefined)
  const bytes: Uint8Array = await sandbox.files.readBytes('/etc/hostname')
  return sandbox.exec.run(['wc', '-c'], { stdin: bytes, timeout: '5s' })
}
`
}

/** The same for the dialects. */
export function typedDialects(from: string): string {
  return `import { IsletError, Sandbox, type ProcessResult } from '${from}/opencomputer'
import { compute, type FileInfo, Sandbox as Other } from '${from}/computesdk'
import { isletSandbox, SandboxAgent, type WorkspaceSnapshot } from '${from}/agentium'

export async function main(): Promise<ProcessResult> {
  const sandbox = await Sandbox.create({ template: 'base', timeout: 600, cpuCount: 2 })
  // @ts-expect-error a timeout is a number of seconds
  Sandbox.create({ timeout: '10m' }).catch((error: unknown) => error instanceof IsletError && error.hint)
  const other = await compute.sandbox.create({ envs: { A: '1' } })
  const { port }: { port?: number } = await other.server.start({ slug: 'api', start: 'npm start', restart_policy: 'always' })
  // @ts-expect-error there is no such field
  const file: FileInfo = { ...(await other.file.create('/a', String(port))), isDirectory: false }
  const again = new Other({ sandboxUrl: other.sandboxUrl, token: file.name })
  const at: Date = (await again.getInfo()).createdAt
  // @ts-expect-error a template of one is no name of the other
  await compute.sandbox.create({ template: at.toISOString() })
  const agent = new SandboxAgent({ backend: 'remote', remote: isletSandbox({ runtime: 'host' }) })
  const snapshot: WorkspaceSnapshot = await agent.snapshot({ ignore: ['node_modules'] })
  // @ts-expect-error a snapshot is no text
  await agent.resume(JSON.stringify(snapshot))
  return sandbox.exec.run('true', { timeout: 5 })
}
`
}
