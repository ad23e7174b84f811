// Agent sessions. Each is a process that runs agent-runner.mjs; this sends it lines on stdin. What it prints is kept and attached to
// like the output of any process.
import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import {
  type AgentSessionInfo,
  type ConfigureAgentParsed,
  IsletError,
  newId,
  type ProcessInfo,
  type StartAgentParsed,
  type StartProcessParsed,
} from '@islet/contract'
import type { Sandboxes } from '../../control/sandboxes.ts'
import { AgentTable } from '../../db/agents.ts'
import type { Db } from '../../db/db.ts'
import { hasCode } from '../../lib/has-code.ts'
import { Locks } from '../../lib/locks.ts'
import { oneChunk } from '../../wire/chunks.ts'
import type { Processes } from '../processes/processes.ts'
import { conversationIn, eventsIn } from './events.ts'

const GUEST_WAIT_MS = 10_000
const FIRST_LINE_MS = 10_000
/** How much of the end of the output is searched for an event. Some events are long. */
const TAIL_BYTES = [64 * 1024, 512 * 1024]
const USE_CLAUDE = {
  hint: 'Use the runtime claude, or install it in the sandbox: npm install -g @anthropic-ai/claude-agent-sdk.',
}

/** The package has it beside the bundled code. */
const RUNNER = new URL('./agent-runner.mjs', import.meta.url)

interface AgentsOptions {
  db: Db
  sandboxes: Sandboxes
  processes: Processes
}

interface Line {
  type: 'configure' | 'prompt' | 'interrupt'
  [field: string]: unknown
}

export class Agents {
  readonly #options: AgentsOptions
  readonly #table: AgentTable
  /** A session gets one line at a time: a long one is sent in parts. */
  readonly #writing = new Locks()

  constructor(options: AgentsOptions) {
    this.#options = options
    this.#table = new AgentTable(options.db)
  }

  /** Resolves when the runner is ready. */
  async start(sandboxId: string, input: StartAgentParsed): Promise<AgentSessionInfo> {
    const { prompt, cwd, env, user, timeout, keepOutput, keepAwake, maxRunAfterDisconnect, ...config } = input
    // A session is not a command: the timeout of commands is not for it.
    const how = { cwd, env, user, timeout: timeout ?? 0, keepOutput, keepAwake, maxRunAfterDisconnect }
    const { processes } = this.#options
    const { id } = await this.#spawn(sandboxId, how)
    try {
      if (Object.keys(config).length > 0) await this.#send(sandboxId, id, { type: 'configure', ...config })
      if (prompt !== undefined) await this.#send(sandboxId, id, { type: 'prompt', text: prompt })
      await processes.firstOutput(sandboxId, id, FIRST_LINE_MS)
      this.#assertHasPackage(sandboxId, id)
      this.#table.insert(id)
    } catch (error) {
      await processes.cancel(sandboxId, id).catch(() => {}) // the sandbox is gone, and the session with it
      throw error
    }
    return this.get(sandboxId, id)
  }

  /** Newest first. */
  async list(sandboxId: string, { limit = 100 }: { limit?: number }): Promise<AgentSessionInfo[]> {
    this.#options.sandboxes.record(sandboxId)
    const found: AgentSessionInfo[] = []
    for (const id of this.#table.ids(sandboxId, limit)) {
      found.push(await this.get(sandboxId, id))
      // Let other requests run.
      await setImmediate()
    }
    return found
  }

  async get(sandboxId: string, sessionId: string): Promise<AgentSessionInfo> {
    return this.#toSession(await this.#find(sandboxId, sessionId))
  }

  /** Resolves when the runner was sent the line. */
  async prompt(
    sandboxId: string,
    sessionId: string,
    prompt: { text: string; resume?: string },
  ): Promise<void> {
    await this.#find(sandboxId, sessionId)
    await this.#send(sandboxId, sessionId, { type: 'prompt', ...prompt })
  }

  async interrupt(sandboxId: string, sessionId: string): Promise<void> {
    await this.#find(sandboxId, sessionId)
    await this.#send(sandboxId, sessionId, { type: 'interrupt' })
  }

  async configure(sandboxId: string, sessionId: string, config: ConfigureAgentParsed): Promise<void> {
    await this.#find(sandboxId, sessionId)
    await this.#send(sandboxId, sessionId, { type: 'configure', ...config })
  }

  /** The runner removes its file when it begins. */
  async #spawn(sandboxId: string, how: Omit<StartProcessParsed, 'command'>): Promise<ProcessInfo> {
    const { sandboxes, processes } = this.#options
    const { record, machine } = await sandboxes.running(sandboxId)
    const { guest } = machine
    await guest.ready({ timeoutMs: GUEST_WAIT_MS })
    const path = `/tmp/.islet-agent-${newId('process')}.mjs`
    const owner = how.user ?? record.user
    await guest.write(path, oneChunk(readFileSync(RUNNER)), {
      mode: 0o600,
      owner,
      exclusive: true,
      parents: true,
    })
    try {
      return await processes.start(sandboxId, { command: ['node', path], ...how, stdin: true })
    } catch (error) {
      await guest.remove(path).catch(() => {}) // the sandbox is gone, and the file with it
      if (!hasCode(error, 'command_not_found')) throw error
      throw new IsletError(
        'interpreter_not_found',
        'The sandbox has no node, which agent sessions need.',
        USE_CLAUDE,
      )
    }
  }

  async #send(sandboxId: string, sessionId: string, line: Line): Promise<void> {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
    await this.#writing.run([sessionId], () =>
      this.#options.processes.writeStdin(sandboxId, sessionId, bytes, { end: false }),
    )
  }

  #assertHasPackage(sandboxId: string, sessionId: string): void {
    const output = this.#options.processes.tail(sandboxId, sessionId, TAIL_BYTES[0]!)
    const [first] = eventsIn(output.split('\n'))
    if (first?.type !== 'error' || first.code !== 'package_not_found') return
    const message = 'The sandbox has no Claude Agent SDK, or cannot load it.'
    throw new IsletError('interpreter_not_found', message, USE_CLAUDE)
  }

  async #find(sandboxId: string, sessionId: string): Promise<ProcessInfo> {
    const process = await this.#options.processes.found(sandboxId, sessionId)
    if (this.#table.has(sessionId)) return process
    throw new IsletError('process_not_found', `Process ${sessionId} is not an agent session.`)
  }

  #toSession({
    id,
    sandboxId,
    status,
    startedAt,
    endedAt,
    outputBytes,
    result,
  }: ProcessInfo): AgentSessionInfo {
    return {
      sessionId: id,
      sandboxId,
      running: status === 'running',
      startedAt,
      endedAt,
      exitCode: result?.exitCode ?? null,
      claudeSessionId: this.#conversation(sandboxId, id, outputBytes),
    }
  }

  #conversation(sandboxId: string, sessionId: string, outputBytes: number): string | null {
    for (const bytes of TAIL_BYTES) {
      const found = conversationIn(this.#options.processes.tail(sandboxId, sessionId, bytes))
      if (found !== undefined || outputBytes <= bytes) return found ?? null
    }
    return null
  }
}
