// What a client has of one watcher: its handlers, and the channel its events come by.
import {
  type FileChange,
  type WatcherInfo,
  type WatcherMessage,
  watcherMessageShape,
} from '@islet/contract/client'
import { Channel } from '../client/channel.ts'
import type { Client } from '../client/client.ts'
import { hasCode } from '../errors.ts'
import { ABORTABLE, guard } from '../options.ts'
import { Handlers } from './handlers.ts'

/** What is held until there is a handler for it. */
const HELD_EVENTS = 10_000
const HELD_CHARACTERS = 8 * 1024 * 1024

export type WatcherEvents = {
  change: FileChange
  /** Events were lost, because something was too slow or the connection broke: look again. */
  overflow: undefined
  /** By `destroy`, by its id, by another client, or with the sandbox. */
  destroyed: undefined
  /** It stopped, or the connection to it is lost for good. */
  error: unknown
}

export class FileWatcher {
  readonly #client: Client
  readonly #handlers = new Handlers<WatcherEvents>()
  #info: WatcherInfo
  #channel: Channel<WatcherMessage> | undefined
  #held: Held | undefined = new Held()
  #isOver = false

  /** Resolves when its events come. */
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

  /** What came before the first handler for `change` was there comes to it now. */
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

  /** Ends the watcher for every client. Of one that is destroyed: code `watcher_not_found`. */
  async destroy(options: { signal?: AbortSignal } = {}): Promise<void> {
    await this.#client.call('deleteWatcher', { params: this.#params, ...options })
    this.#channel?.close()
  }

  get #params(): { id: string; wid: string } {
    return { id: this.#info.sandboxId, wid: this.#info.id }
  }

  async #open(): Promise<void> {
    this.#channel = await Channel.open(this.#client, 'watcherEvents', {
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
    if (this.#isOver) return
    this.#isOver = true
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
