// For host programs that drive the Claude Agent SDK themselves, in Node, while Claude Code runs in a sandbox.
import { IsletError } from '@islet/contract/client'
import { hasCode } from '../errors.ts'
import { nodeProcess } from '../platform.ts'
import type { ExecSession, StartOptions } from '../process/exec.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

/** What the Agent SDK asks for; paths are those of the sandbox. */
export interface ClaudeSpawn {
  command: string
  args: string[]
  cwd?: string
  env: Record<string, string | undefined>
  signal: AbortSignal
}

export interface ClaudeInsideOptions {
  user?: string
  /** What Claude Code prints on stderr. */
  onStderr?(text: string): void
}

/** A host program that is gone for so long does not come back. */
const ABANDONED_MS = 60_000

/** Prints the path of the program that belongs to the npm package, installed in the working directory or globally. */
const FIND = `
const { createRequire } = require('node:module')
const paths = [process.cwd(), require('node:path').join(process.execPath, '../../lib')]
const sdk = createRequire(require.resolve('@anthropic-ai/claude-agent-sdk', { paths }))
for (const libc of ['', '-musl']) {
  try {
    console.log(sdk.resolve('@anthropic-ai/claude-agent-sdk-linux-' + process.arch + libc + '/claude'))
    break
  } catch {}
}`

/**
 * For the option `spawnClaudeCodeProcess` of the Agent SDK; `Process` is its SpawnedProcess. The program is the option
 * `pathToClaudeCodeExecutable`; if the sandbox has none at that path, the one of the npm package in the sandbox.
 */
export function claudeInside<Process = unknown>(
  sandbox: Sandbox,
  options: ClaudeInsideOptions = {},
): (spawn: ClaudeSpawn) => Process {
  const node = nodeProcess()
  if (!node?.getBuiltinModule)
    throw new IsletError('not_supported', 'claudeInside needs Node 20.16 or newer; so does the Agent SDK.')
  const { EventEmitter } = node.getBuiltinModule('node:events')
  const { PassThrough } = node.getBuiltinModule('node:stream')

  /** The streams exist at once; the process in the sandbox is started behind them. */
  class ClaudeProcess extends EventEmitter {
    readonly stdin = new PassThrough()
    readonly stdout = new PassThrough()
    killed = false
    exitCode: number | null = null
    signalCode: string | null = null
    #session: ExecSession | undefined
    #signal: string | undefined

    constructor(spawn: ClaudeSpawn) {
      super()
      spawn.signal.addEventListener('abort', () => this.kill('SIGKILL'), { once: true })
      this.#run(spawn).catch((error) => this.emit('error', error))
    }

    kill(signal: string): boolean {
      if (this.exitCode !== null || this.signalCode !== null) return false
      this.killed = true
      this.#signal = signal
      this.#session?.kill(signal).catch(() => {}) // it has ended meanwhile
      return true
    }

    async #run(spawn: ClaudeSpawn): Promise<void> {
      const decoder = new TextDecoder()
      const session = await start(sandbox, spawn, {
        cwd: spawn.cwd,
        user: options.user,
        env: withoutHost(spawn.env, node!.env!),
        maxRunAfterDisconnect: ABANDONED_MS,
        onStdout: (data) => this.#print(data),
        onStderr: (data) => options.onStderr?.(decoder.decode(data, { stream: true })),
      })
      this.#session = session
      if (this.#signal) this.kill(this.#signal)
      this.#feed(session).catch(() => {}) // the process has ended; its result says how
      const { exitCode, signal } = await session.result
      this.exitCode = signal === null ? exitCode : null
      this.signalCode = signal
      this.stdout.end()
      this.emit('exit', this.exitCode, signal)
    }

    async #feed(session: ExecSession): Promise<void> {
      for await (const data of this.stdin) await session.sendStdin(data)
      session.closeStdin()
    }

    #print(data: Uint8Array): void | Promise<void> {
      if (this.stdout.write(data)) return
      return new Promise((resolve) => this.stdout.once('drain', resolve))
    }
  }

  return (spawn) => new ClaudeProcess(spawn) as Process
}

async function start(
  { exec }: Sandbox,
  { command, args }: ClaudeSpawn,
  options: StartOptions,
): Promise<ExecSession> {
  try {
    return await exec.start(command, { ...options, args })
  } catch (error) {
    if (!hasCode(error, 'command_not_found')) throw error
    const { cwd, user } = options
    const { stdout } = await exec.run(['node', '-e', FIND], { cwd, user })
    if (stdout === '') throw error
    return exec.start(stdout.trim(), { ...options, args })
  }
}

/** The Agent SDK passes the whole environment of the host on by default. Of it, only what is for Claude goes into the sandbox. */
function withoutHost(
  env: ClaudeSpawn['env'],
  host: Record<string, string | undefined>,
): Record<string, string> {
  const kept = Object.entries(env).filter(
    ([name, value]) =>
      value !== undefined && (value !== host[name] || /^(?:ANTHROPIC|CLAUDE_CODE)_/.test(name)),
  )
  return { IS_SANDBOX: '1', ...(Object.fromEntries(kept) as Record<string, string>) }
}
