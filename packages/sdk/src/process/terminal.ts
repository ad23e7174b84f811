import { IsletError, type ResponseOf, type RouteName, type TerminalInfo } from '@islet/contract/client'
import type { CallOptions, Client } from '../client/client.ts'
import { hasCode } from '../errors.ts'
import type { Abortable } from '../options.ts'
import { Handlers } from '../sandbox/handlers.ts'
import { base64 } from '../transport/body.ts'
import { PtySession } from './pty.ts'
import { TerminalCommands } from './terminal-command.ts'

export type TerminalEvents = {
  /** Output of the terminal, in the terminal's encoding. */
  output: string
  /** The connection is lost for good, or the sandbox has ended. */
  error: Error
  /** Any client destroyed the terminal, or its shell has ended. */
  destroyed: undefined
}

/** How much output is held until the first `output` handler is registered. */
const EARLY_CHARACTERS = 1024 * 1024

/** A connected terminal. `await using` destroys it at the end of the block. */
export class TerminalInstance {
  readonly id: string
  readonly pty: boolean
  readonly encoding: 'raw' | 'base64'
  /** The path of the WebSocket of a pty. */
  readonly channel: string | null
  /** The shell of a pty. */
  readonly processId: string | null
  readonly #client: Client
  readonly #params: { id: string; tid: string }
  readonly #handlers = new Handlers<TerminalEvents>()
  readonly #commands: TerminalCommands
  readonly #decoder = new TextDecoder()
  #status: TerminalInfo['status']
  #session: PtySession | undefined
  #early: string[] | undefined = []
  #earlyCharacters = 0
  #destroying: Promise<void> | undefined

  /** For `sandbox.terminal`, after it destroyed this terminal. A pty learns it from its own connection. */
  wasDestroyed(): void {
    if (!this.pty) this.#end()
  }

  /** For `sandbox.terminal`. */
  static async open(client: Client, info: TerminalInfo, options: Abortable): Promise<TerminalInstance> {
    const terminal = new TerminalInstance(client, info)
    if (info.processId !== null) await terminal.#attach(info.processId, options)
    return terminal
  }

  private constructor(client: Client, info: TerminalInfo) {
    this.#client = client
    this.#params = { id: info.sandboxId, tid: info.id }
    this.#commands = new TerminalCommands({ call: (...args) => this.#call(...args) }, this.#params)
    this.#status = info.status
    this.id = info.id
    this.pty = info.pty
    this.encoding = info.encoding
    this.channel = info.channel
    this.processId = info.processId
  }

  /** A pty is `running` until its shell ends; a terminal for commands is `ready` until it is destroyed. */
  get status(): TerminalInfo['status'] {
    return this.#status
  }

  /** If another client destroyed a terminal for commands, this is true until the next call of a command fails. */
  isRunning(): boolean {
    return this.#status !== 'stopped'
  }

  /** The commands of a terminal without a pty. */
  get command(): TerminalCommands {
    if (!this.pty) return this.#commands
    throw new IsletError('invalid_state', `Terminal ${this.id} is a pty: it takes input, not commands.`, {
      hint: 'Use write, or create a terminal without pty.',
    })
  }

  /** Types into the shell. Resolves when there is room for more. Code `invalid_state` once the shell has ended. */
  write(input: string | Uint8Array): Promise<void> {
    return this.#shell().send(input)
  }

  resize(cols: number, rows: number): void {
    this.#shell().resize(cols, rows)
  }

  /** The first `output` handler also gets the output that came before it. */
  on<Name extends keyof TerminalEvents>(name: Name, handler: (event: TerminalEvents[Name]) => unknown): void {
    this.#handlers.on(name, handler)
    if (name !== 'output') return
    const early = this.#early ?? []
    this.#early = undefined
    for (const text of early) this.#handlers.emit('output', text)
  }

  off<Name extends keyof TerminalEvents>(
    name: Name,
    handler: (event: TerminalEvents[Name]) => unknown,
  ): void {
    this.#handlers.off(name, handler)
  }

  /** Leaves the terminal as it is; `sandbox.terminal.connect` connects again. */
  disconnect(): void {
    this.#session?.detach()
  }

  /** Kills what runs in the terminal. Does nothing if the terminal is destroyed already. */
  destroy(): Promise<void> {
    this.#destroying ??= this.#destroy()
    return this.#destroying
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy()
  }

  async #destroy(): Promise<void> {
    try {
      await this.#client.call('deleteTerminal', { params: this.#params })
    } catch (error) {
      if (!hasCode(error, 'terminal_not_found')) {
        this.#destroying = undefined
        throw error
      }
    }
    this.#end()
    this.#session?.detach()
  }

  /** If another client destroyed the terminal, the next call of a command finds out. */
  async #call<Name extends RouteName>(name: Name, options?: CallOptions<Name>): Promise<ResponseOf<Name>> {
    try {
      return await this.#client.call(name, options)
    } catch (error) {
      if (hasCode(error, 'terminal_not_found', 'sandbox_not_found')) this.#end()
      throw error
    }
  }

  #shell(): PtySession {
    if (this.#session) return this.#session
    throw new IsletError('invalid_state', `Terminal ${this.id} is not a pty: it takes commands, not input.`, {
      hint: 'Use command.run, or create a terminal with pty: true.',
    })
  }

  async #attach(processId: string, options: Abortable): Promise<void> {
    const onOutput = (_: unknown, bytes: Uint8Array) => this.#output(bytes)
    this.#session = await PtySession.open(this.#client, this.#params.id, processId, { onOutput }, options)
    this.#session.result.then(
      () => this.#end(),
      (error) => {
        if ((error as Error).name === 'AbortError') return
        this.#handlers.emit('error', error as Error)
        if (!hasCode(error, 'connection_failed')) this.#end()
      },
    )
  }

  #output(bytes: Uint8Array): void {
    const text = this.encoding === 'base64' ? base64(bytes) : this.#decoder.decode(bytes, { stream: true })
    if (text === '') return
    if (this.#early) this.#keep(text, this.#early)
    else this.#handlers.emit('output', text)
  }

  #keep(text: string, early: string[]): void {
    early.push(text)
    this.#earlyCharacters += text.length
    while (this.#earlyCharacters > EARLY_CHARACTERS) this.#earlyCharacters -= early.shift()!.length
  }

  #end(): void {
    if (this.#status === 'stopped') return
    this.#status = 'stopped'
    this.#handlers.emit('destroyed', undefined)
  }
}
