import type { AgentSessionInfo, McpServer, StartAgent } from '@islet/contract/client'
import { SandboxPart } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard, type Names } from '../options.ts'
import type { AgentHandlers } from './output.ts'
import { AgentSession } from './session.ts'

export type McpServerConfig = McpServer

export interface StartAgentOptions extends StartAgent, AgentHandlers {
  /** Aborting closes the session and leaves the agent running. */
  signal?: AbortSignal
}

export interface AttachAgentOptions extends AgentHandlers, Abortable {}

/** Agents that work in the sandbox: the Claude Agent SDK, driven by prompts. The runtime `claude` has it. */
export class Agents extends SandboxPart {
  /** Starts an agent, which goes on without clients. Code `interpreter_not_found` if the sandbox has no Agent SDK. */
  async start(options: StartAgentOptions = {}): Promise<AgentSession> {
    const { onEvent, onError, onExit, onScrollbackEnd, signal, ...body } = options
    const { sessionId } = await this.client.call('startAgent', { params: this.params, body, signal })
    const handlers = { onEvent, onError, onExit, onScrollbackEnd }
    return AgentSession.open(this.client, this.#of(sessionId), handlers, signal)
  }

  /** Another client of an agent that runs or has ended: gives the kept events, then live ones. */
  async attach(sessionId: string, options: AttachAgentOptions = {}): Promise<AgentSession> {
    const { signal, ...handlers } = options
    await this.get(sessionId, { signal })
    return AgentSession.open(this.client, this.#of(sessionId), handlers, signal)
  }

  /** Newest first. */
  async list(options: { limit?: number } & Abortable = {}): Promise<AgentSessionInfo[]> {
    const { signal, ...query } = options
    return (await this.client.call('listAgents', { params: this.params, query, signal })).sessions
  }

  /** Code `process_not_found` if there is none. */
  get(sessionId: string, options: Abortable = {}): Promise<AgentSessionInfo> {
    return this.client.call('getAgent', { params: this.#of(sessionId), ...options })
  }

  #of(sessionId: string): { id: string; pid: string } {
    return { ...this.params, pid: sessionId }
  }
}

const ATTACH: Names<AttachAgentOptions> = { onEvent: 1, onError: 1, onExit: 1, onScrollbackEnd: 1, signal: 1 }
const START: Names<StartAgentOptions> = {
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
  env: 1,
  user: 1,
  timeout: 1,
  keepOutput: 1,
  keepAwake: 1,
  maxRunAfterDisconnect: 1,
}

guard(Agents.prototype, 'sandbox.agent', {
  start: [START],
  attach: [null, ATTACH],
  list: [{ limit: 1, signal: 1 }],
  get: [null, ABORTABLE],
})
