// Agent sessions: the same methods as `sandbox.agent` of the SDK, with the names and errors of this dialect.
import {
  type Names,
  type AgentSession as NativeSession,
  refuseUnknown,
  type Sandbox,
  type StartAgentOptions,
} from '@islet/sdk'
import { failing, quiet } from './failed.ts'

export interface McpServerConfig {
  command: string
  args?: string[]
  env?: Record<string, string>
}

export interface AgentEvent {
  type: string
  [field: string]: unknown
}

export interface AgentConfig {
  model?: string
  systemPrompt?: string
  allowedTools?: string[]
  permissionMode?: StartAgentOptions['permissionMode']
  /** Default: 50. */
  maxTurns?: number
  cwd?: string
  mcpServers?: Record<string, McpServerConfig>
  /** The id of an earlier conversation. */
  resume?: string
}

export interface AgentAttachOpts {
  onEvent?: (event: AgentEvent) => void
  /** What the agent prints on stderr. */
  onError?: (data: string) => void
  onExit?: (exitCode: number) => void
  onScrollbackEnd?: () => void
}

export interface AgentStartOpts extends AgentConfig, AgentAttachOpts {
  prompt?: string
}

export interface AgentSession {
  readonly sessionId: string
  /** The exit code, or -1 if the session ends before the agent does. */
  readonly done: Promise<number>
  /** Awaiting these three is optional. */
  sendPrompt(text: string): Promise<void>
  interrupt(): Promise<void>
  configure(config: AgentConfig): Promise<void>
  /** Default: 9, SIGKILL. */
  kill(signal?: number): Promise<void>
  /** Leaves the agent running. */
  close(): void
}

export interface AgentSessionInfo {
  sessionID: string
  sandboxID: string
  running: boolean
  startedAt: string
  claudeSessionID?: string
}

const SIGKILL = 9
const ATTACH: Names<AgentAttachOpts> = { onEvent: 1, onError: 1, onExit: 1, onScrollbackEnd: 1 }
const START: Names<AgentStartOpts> = {
  ...ATTACH,
  prompt: 1,
  model: 1,
  systemPrompt: 1,
  allowedTools: 1,
  permissionMode: 1,
  maxTurns: 1,
  cwd: 1,
  mcpServers: 1,
  resume: 1,
}

export class Agent {
  readonly #native: Sandbox

  constructor(native: Sandbox) {
    this.#native = native
  }

  async start(opts: AgentStartOpts = {}): Promise<AgentSession> {
    refuseUnknown('sandbox.agent.start', opts, START)
    return toSession(await failing('Failed to create agent session', this.#native.agent.start(opts)), opts)
  }

  async attach(sessionId: string, opts: AgentAttachOpts = {}): Promise<AgentSession> {
    refuseUnknown('sandbox.agent.attach', opts, ATTACH)
    return toSession(
      await failing('WebSocket connection failed', this.#native.agent.attach(sessionId, opts)),
      opts,
    )
  }

  async list(): Promise<AgentSessionInfo[]> {
    const all = await failing('Failed to list agent sessions', this.#native.agent.list())
    return all.map(({ sessionId, running, startedAt, claudeSessionId }) => ({
      sessionID: sessionId,
      sandboxID: this.#native.id,
      running,
      startedAt,
      ...(claudeSessionId && { claudeSessionID: claudeSessionId }),
    }))
  }
}

function toSession(native: NativeSession, { onExit }: AgentAttachOpts): AgentSession {
  const lost = (): number => {
    onExit?.(-1)
    return -1
  }
  const told = async (tell: () => unknown): Promise<void> => void (await tell())
  return {
    sessionId: native.sessionId,
    done: native.done.catch(lost),
    sendPrompt: (text) => quiet(told(() => native.sendPrompt(text))),
    interrupt: () => quiet(told(() => native.interrupt())),
    configure: (config) => quiet(told(() => native.configure(config))),
    kill: (signal = SIGKILL) => quiet(failing('Failed to kill agent session', native.kill(signal))),
    close: () => native.close(),
  }
}
