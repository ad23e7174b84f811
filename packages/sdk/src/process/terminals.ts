import type { CreateTerminal, TerminalInfo } from '@islet/contract/client'
import { SandboxPart } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard, type Names } from '../options.ts'
import { TerminalInstance } from './terminal.ts'

export interface TerminalOptions extends CreateTerminal {
  /** Aborting disconnects and leaves the terminal as it is. */
  signal?: AbortSignal
}

/** Terminals of one sandbox. Each is an interactive shell (`pty`), or a group of commands whose results are kept. */
export class Terminals extends SandboxPart {
  /** Told when `destroy` ends them. Weak, so that unused instances can be collected. */
  readonly #instances = new Set<WeakRef<TerminalInstance>>()

  async create(options: TerminalOptions = {}): Promise<TerminalInstance> {
    const { signal, ...body } = options
    const info = await this.client.call('createTerminal', { params: this.params, body, signal })
    try {
      return await this.#open(info, { signal })
    } catch (error) {
      await this.destroy(info.id).catch(() => {})
      throw error
    }
  }

  /** Another client of an existing terminal. The kept output of a pty comes first. */
  async connect(id: string, options: Abortable = {}): Promise<TerminalInstance> {
    return this.#open(await this.retrieve(id, options), options)
  }

  /** The open terminals, oldest first. */
  async list(options: Abortable = {}): Promise<TerminalInfo[]> {
    return (await this.client.call('listTerminals', { params: this.params, ...options })).terminals
  }

  /** Code `terminal_not_found` if there is none. */
  retrieve(id: string, options: Abortable = {}): Promise<TerminalInfo> {
    return this.client.call('getTerminal', { params: { ...this.params, tid: id }, ...options })
  }

  /** Kills what runs in the terminal. Code `terminal_not_found` if there is none. */
  async destroy(id: string, options: Abortable = {}): Promise<void> {
    await this.client.call('deleteTerminal', { params: { ...this.params, tid: id }, ...options })
    for (const reference of this.#instances) {
      const terminal = reference.deref()
      if (terminal?.id === id) terminal.wasDestroyed()
      if (!terminal?.isRunning()) this.#instances.delete(reference)
    }
  }

  async #open(info: TerminalInfo, options: Abortable): Promise<TerminalInstance> {
    const terminal = await TerminalInstance.open(this.client, info, options)
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
