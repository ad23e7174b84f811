import type { ConfigureAgent } from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { Session } from '../process/session.ts'
import { type AgentHandlers, AgentOutput } from './output.ts'

/** Everything in it is optional; what is absent stays as it is. */
export type AgentConfig = ConfigureAgent

/** One client of an agent session. Several clients may be attached; each gets all events. */
export class AgentSession {
  /** The exit code. Rejects if the session is closed, or the sandbox ends, before the agent does. */
  readonly done: Promise<number>
  readonly #client: Client
  readonly #params: { id: string; pid: string }
  readonly #process: AgentProcess
  readonly #output: AgentOutput
  /** Lines are sent one after the other, in the order of the calls. */
  #sending: Promise<void> = Promise.resolve()

  /** For the SDK itself; callers use `sandbox.agent.start` and `sandbox.agent.attach`. */
  static async open(
    client: Client,
    params: { id: string; pid: string },
    handlers: AgentHandlers,
    signal: AbortSignal | undefined,
  ): Promise<AgentSession> {
    const output = new AgentOutput(handlers)
    const process = await AgentProcess.open(
      client,
      params.id,
      params.pid,
      {
        onOutput: (channel, bytes) => output.take(channel, bytes),
        onGap: () => output.gap(),
        onReplayEnd: () => handlers.onScrollbackEnd?.(),
        onExit: ({ exitCode }) => {
          void output.end()
          handlers.onExit?.(exitCode)
        },
      },
      { signal },
    )
    return new AgentSession(client, params, process, output)
  }

  private constructor(
    client: Client,
    params: { id: string; pid: string },
    process: AgentProcess,
    output: AgentOutput,
  ) {
    this.#client = client
    this.#params = params
    this.#process = process
    this.#output = output
    this.done = process.done
  }

  /** The id of its process, for `sandbox.agent.attach` and `sandbox.exec.kill`. */
  get sessionId(): string {
    return this.#params.pid
  }

  /** The conversation that the last event named: `start({ resume })` continues it in a new session. */
  get claudeSessionId(): string | undefined {
    return this.#output.claudeSessionId
  }

  /** Resolves when the agent has it. It runs after the prompts before it. With `resume`, in another conversation. */
  sendPrompt(text: string, resume?: string): Promise<void> {
    return this.#send('promptAgent', { text, resume })
  }

  /** Ends the current turn with the event `interrupted`. Prompts that wait run then. */
  interrupt(): Promise<void> {
    return this.#send('interruptAgent', undefined)
  }

  /** From the next turn on. The conversation continues. */
  configure(config: AgentConfig): Promise<void> {
    return this.#send('configureAgent', config)
  }

  /** Signals the agent and everything that it started. Default: SIGKILL. */
  kill(signal?: string | number): Promise<void> {
    return this.#process.kill(signal)
  }

  /** Leaves the agent running. */
  close(): void {
    this.#process.close()
  }

  #send(
    ...[name, body]:
      | ['promptAgent', { text: string; resume?: string }]
      | ['interruptAgent', undefined]
      | ['configureAgent', AgentConfig]
  ): Promise<void> {
    const sent = this.#sending.then(() => this.#client.call(name, { params: this.#params, body }))
    this.#sending = sent.catch(() => {})
    return sent
  }
}

class AgentProcess extends Session {
  close(): void {
    this.leave()
  }
}
