// The output of an agent session as events: stdout is one JSON object per line, stderr is text.

/** As the runner prints it. The messages of the Claude Agent SDK are passed on as they are. */
export interface AgentEvent {
  /**
   * Of a session: `ready`, `configured`, `turn_complete`, `interrupted` and `error`. Of the Agent SDK: `system`, `assistant`, `user`,
   * `result` and others.
   */
  type: string
  /** The id of the conversation, for `resume`: with `turn_complete` and `interrupted`. */
  claude_session_id?: string
  /** The same in the messages of the Agent SDK. */
  session_id?: string
  subtype?: string
  /** `assistant` and `user`: a message of the Messages API. `error`: a sentence. */
  message?: unknown
  /** `result`: the last text of the agent. */
  result?: string
  is_error?: boolean
  /** `error`: `no_api_key`, `package_not_found` or `agent_failed`. */
  code?: string
  [field: string]: unknown
}

export interface AgentHandlers {
  /** A returned promise delays the next event. */
  onEvent?(event: AgentEvent): void | Promise<void>
  /** What the Agent SDK prints on stderr, and lines on stdout that are not events. */
  onError?(text: string): void | Promise<void>
  onExit?(exitCode: number): void
  /** The events so far were given; those that follow are live. */
  onScrollbackEnd?(): void
}

const MAX_LINE_CHARACTERS = 64 * 1024 * 1024

export class AgentOutput {
  /** The conversation that the last event named. */
  claudeSessionId: string | undefined
  readonly #handlers: AgentHandlers
  #stdout = new TextDecoder()
  #stderr = new TextDecoder()
  #line = ''
  /** The beginning of this line is lost, or it was too long. */
  #isSkipping = false

  constructor(handlers: AgentHandlers) {
    this.#handlers = handlers
  }

  async take(channel: 'stdout' | 'stderr', bytes: Uint8Array): Promise<void> {
    if (channel === 'stderr') return this.#complain(this.#stderr.decode(bytes, { stream: true }))
    const [first = '', ...rest] = this.#stdout.decode(bytes, { stream: true }).split('\n')
    this.#append(first)
    for (const text of rest) {
      await this.#endLine()
      this.#append(text)
    }
  }

  /** Output between what was taken and what comes next is lost. */
  gap(): void {
    this.#stdout = new TextDecoder()
    this.#stderr = new TextDecoder()
    this.#line = ''
    this.#isSkipping = true
  }

  /** The process has ended, perhaps in the middle of a line. */
  async end(): Promise<void> {
    if (this.#line !== '') await this.#endLine()
  }

  #append(text: string): void {
    if (this.#isSkipping) return
    if (this.#line.length + text.length <= MAX_LINE_CHARACTERS) this.#line += text
    else {
      this.#line = ''
      this.#isSkipping = true
    }
  }

  async #endLine(): Promise<void> {
    const line = this.#line
    const isWhole = !this.#isSkipping
    this.#line = ''
    this.#isSkipping = false
    if (!isWhole || line.trim() === '') return
    const event = toEvent(line)
    if (!event) return this.#complain(`non-JSON stdout: ${line}`)
    this.claudeSessionId = event.claude_session_id ?? event.session_id ?? this.claudeSessionId
    await this.#handlers.onEvent?.(event)
  }

  async #complain(text: string): Promise<void> {
    if (text !== '') await this.#handlers.onError?.(text)
  }
}

function toEvent(line: string): AgentEvent | undefined {
  try {
    const value = JSON.parse(line)
    if (typeof value?.type === 'string') return value
  } catch {}
}
