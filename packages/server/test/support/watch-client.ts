import { once } from 'node:events'
import { type WatcherMessage, watcherMessage } from '@islet/contract'
import { WebSocket } from 'ws'
import { AUTHORIZED } from './client.ts'
import { until } from './server.ts'

type Change = Extract<WatcherMessage, { type: 'change' }>

/** A client of a watcher that writes down what it sees. */
export class WatchClient {
  readonly socket: WebSocket
  readonly root: string
  readonly messages: WatcherMessage[] = []
  readonly closed: Promise<number>

  private constructor(url: string, root: string) {
    this.root = root
    this.socket = new WebSocket(url, [], AUTHORIZED)
    this.closed = once(this.socket, 'close').then(([code]) => code as number)
    this.socket.on('message', (data: Buffer) => {
      this.messages.push(watcherMessage.parse(JSON.parse(data.toString())))
    })
  }

  /** Once the server has said `start`. */
  static async open(url: string, root: string): Promise<WatchClient> {
    const client = new WatchClient(url, root)
    await Promise.race([once(client.socket, 'open'), client.closed])
    await until(() => client.messages.length > 0)
    return client
  }

  get types(): string[] {
    return this.messages.map(({ type }) => type)
  }

  get changes(): Change[] {
    return this.messages.filter((message) => message.type === 'change')
  }

  /** Each as "event path", below the root. */
  get seen(): string[] {
    return this.changes.map(({ event, path }) => `${event} ${path.slice(this.root.length + 1)}`)
  }

  async until(event: string): Promise<string[]> {
    await until(() => this.seen.includes(event))
    return this.seen
  }
}
