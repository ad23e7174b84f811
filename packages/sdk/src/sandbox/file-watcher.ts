import {
  type FileChange,
  type WatcherInfo,
  type WatcherMessage,
  watcherMessageShape,
} from '@islet/contract/client'
import { openChannel } from '../client/channel.ts'
import type { Client } from '../client/client.ts'
import type { Connection } from '../client/connection.ts'
import { hasCode } from '../errors.ts'
import { ABORTABLE, type Abortable, guard } from '../options.ts'
import { Handlers } from './handlers.ts'

/** How much is held until the first `change` handler is registered. */
const HELD_EVENTS = 10_000
const HELD_CHARACTERS = 8 * 1024 * 1024

export type WatcherEvents = {
  change: FileChange
  /** Events were lost, because a reader was too slow or the connection broke: look at the files again. */
  overflow: undefined
  /** Any client destroyed the watcher, or the sandbox ended. */
  destroyed: undefined
  /** The watcher failed, or the connection to it is lost for good. */
  error: unknown
}

export class FileWatcher {
  readonly #client: Client
  readonly #handlers = new Handlers<WatcherEvents>()
  #info: WatcherInfo
  #channel: Connection | undefined
  #held: Held | undefined = new Held()

  /** Resolves when the connection is open: every change from then on is reported. */
  static async open(client: Client, info: WatcherInfo): Promise<FileWatcher> {
    const watcher = new FileWatcher(client, info)
    await watcher.#open()
    return watcher
  }

  private constructor(client: Client, info: WatcherInfo) {
    this.#client = client
    this.#info = info
  }

  getId(): string {
    return this.#info.id
  }

  getPath(): string {
    return this.#info.path
  }

  getStatus(): WatcherInfo['status'] {
    return this.#info.status
  }

  /** The path of its WebSocket. */
  getChannel(): string {
    return this.#info.channel
  }

  isIncludingContent(): boolean {
    return this.#info.includeContent
  }

  getIgnoredPatterns(): string[] {
    return [...this.#info.ignored]
  }

  isActive(): boolean {
    return this.#info.status === 'active'
  }

  /** The first `change` handler also gets the events that came before it. */
  on<Name extends keyof WatcherEvents>(name: Name, handler: (event: WatcherEvents[Name]) => unknown): void {
    this.#handlers.on(name, handler)
    if (name !== 'change' || !this.#held) return
    const held = this.#held.messages
    this.#held = undefined
    for (const message of held) this.#emit(message)
  }

  off<Name extends keyof WatcherEvents>(name: Name, handler: (event: WatcherEvents[Name]) => unknown): void {
    this.#handlers.off(name, handler)
  }

  /** Ends the watcher for every client. Code `watcher_not_found` if it is destroyed already. */
  async destroy(options: Abortable = {}): Promise<void> {
    await this.#client.call('deleteWatcher', { params: this.#params, ...options })
    this.#channel?.end()
  }

  get #params(): { id: string; wid: string } {
    return { id: this.#info.sandboxId, wid: this.#info.id }
  }

  async #open(): Promise<void> {
    this.#channel = await openChannel<WatcherMessage>(this.#client, 'watcherEvents', {
      params: this.#params,
      shape: watcherMessageShape,
      onMessage: (message) => this.#receive(message),
      onReconnect: () => this.#receive({ type: 'overflow' }),
      onEnd: (error) => this.#end(error),
      whyNot: async () => {
        this.#info = await this.#client.call('getWatcher', { params: this.#params })
      },
    })
  }

  #receive(message: WatcherMessage): void {
    if (this.#held) this.#held.add(message)
    else this.#emit(message)
  }

  #emit(message: WatcherMessage): void {
    if (message.type === 'overflow') this.#handlers.emit('overflow', undefined)
    if (message.type !== 'change') return
    const { type: _, ...change } = message
    this.#handlers.emit('change', change)
  }

  #end(error: unknown): void {
    this.#info = { ...this.#info, status: 'stopped' }
    if (error !== undefined && !hasCode(error, 'watcher_not_found')) this.#handlers.emit('error', error)
    else this.#handlers.emit('destroyed', undefined)
    this.#handlers.clear()
  }
}

class Held {
  messages: WatcherMessage[] = []
  #characters = 0

  add(message: WatcherMessage): void {
    this.#characters += message.type === 'change' ? message.path.length + (message.content?.length ?? 0) : 0
    this.messages.push(message)
    if (this.messages.length <= HELD_EVENTS && this.#characters <= HELD_CHARACTERS) return
    this.messages = [{ type: 'overflow' }]
    this.#characters = 0
  }
}

guard(FileWatcher.prototype, 'watcher', { destroy: [ABORTABLE] })
