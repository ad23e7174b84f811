import type { TerminalInfo } from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { ABORTABLE, guard, type Names } from '../options.ts'
import { TerminalInstance } from './terminal.ts'

export interface TerminalOptions {
  /** An interactive shell; otherwise a place for commands, each with its result. Default: false. */
  pty?: boolean
  /** The program of a pty. Default: the user's login shell. */
  shell?: string
  /** Of a pty. Default: 80. */
  cols?: number
  /** Of a pty. Default: 24. */
  rows?: number
  /** How output is given, to handlers and in commands: as text, or its bytes as base64. Default: raw. */
  encoding?: 'raw' | 'base64'
  cwd?: string
  env?: Record<string, string>
  user?: string
  /** The sandbox is not idle while the shell of a pty runs, also without clients. Default: false. */
  keepAwake?: boolean
  /** Of a pty: how much of its output is kept, bytes or '64Mi'. Default: what the server is set to, 16 MiB. */
  keepOutput?: number | string
  /** Aborting disconnects and leaves the terminal as it is. */
  signal?: AbortSignal
}

interface Abortable {
  signal?: AbortSignal
}

/** Terminals of one sandbox: an interactive shell each, or a place for tracked commands. */
export class Terminals {
  readonly #client: Client
  readonly #params: { id: string }
  /** To be told when `destroy` ends them. Those that nobody holds any more are not kept by this. */
  readonly #instances = new Set<WeakRef<TerminalInstance>>()

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#params = { id: sandboxId }
  }

  async create(options: TerminalOptions = {}): Promise<TerminalInstance> {
    const { signal, ...body } = options
    const info = await this.#client.call('createTerminal', { params: this.#params, body, signal })
    try {
      return await this.#open(info, { signal })
    } catch (error) {
      await this.destroy(info.id).catch(() => {})
      throw error
    }
  }

  /** Another client of a terminal that is there: what a pty printed so far is given first. */
  async connect(id: string, options: Abortable = {}): Promise<TerminalInstance> {
    return this.#open(await this.retrieve(id, options), options)
  }

  /** The open ones, oldest first. */
  async list(options: Abortable = {}): Promise<TerminalInfo[]> {
    return (await this.#client.call('listTerminals', { params: this.#params, ...options })).terminals
  }

  /** Code `terminal_not_found` if there is none. */
  retrieve(id: string, options: Abortable = {}): Promise<TerminalInfo> {
    return this.#client.call('getTerminal', { params: { ...this.#params, tid: id }, ...options })
  }

  /** Kills what runs in it. Code `terminal_not_found` if there is none. */
  async destroy(id: string, options: Abortable = {}): Promise<void> {
    await this.#client.call('deleteTerminal', { params: { ...this.#params, tid: id }, ...options })
    for (const reference of this.#instances) {
      const terminal = reference.deref()
      if (terminal?.id === id) terminal.wasDestroyed()
      if (!terminal?.isRunning()) this.#instances.delete(reference)
    }
  }

  async #open(info: TerminalInfo, options: Abortable): Promise<TerminalInstance> {
    const terminal = await TerminalInstance.open(this.#client, info, options)
    this.#instances.add(new WeakRef(terminal))
    return terminal
  }
}

const TERMINAL: Names<TerminalOptions> = {
  pty: 1,
  shell: 1,
  cols: 1,
  rows: 1,
  encoding: 1,
  cwd: 1,
  env: 1,
  user: 1,
  keepAwake: 1,
  keepOutput: 1,
  signal: 1,
}

guard(Terminals.prototype, 'sandbox.terminal', {
  create: [TERMINAL],
  connect: [null, ABORTABLE],
  list: [ABORTABLE],
  retrieve: [null, ABORTABLE],
  destroy: [null, ABORTABLE],
})
