import { once } from 'node:events'
import { type SignalEvent, type SignalMessage, signalMessage } from '@islet/contract'
import { WebSocket } from 'ws'
import { AUTHORIZED } from './client.ts'
import { until } from './server.ts'

/** A client that writes down the signals it hears. */
export class SignalClient {
  readonly socket: WebSocket
  readonly messages: SignalMessage[] = []
  readonly closed: Promise<number>

  private constructor(url: string) {
    this.socket = new WebSocket(url, [], AUTHORIZED)
    this.closed = once(this.socket, 'close').then(([code]) => code as number)
    this.socket.on('message', (data: Buffer) => {
      this.messages.push(signalMessage.parse(JSON.parse(data.toString())))
    })
  }

  /** Once the server has said `start`. */
  static async open(url: string): Promise<SignalClient> {
    const client = new SignalClient(url)
    await Promise.race([once(client.socket, 'open'), client.closed])
    await until(() => client.messages.length > 0)
    return client
  }

  get types(): string[] {
    return this.messages.map(({ type }) => type)
  }

  get events(): SignalEvent[] {
    return this.messages.flatMap((message) => (message.type === 'signal' ? [message.event] : []))
  }

  /** The signals about a port: open, close. */
  port(number: number): { type: string; url: string }[] {
    return this.events.flatMap((event) => {
      if (event.signal !== 'port') return []
      const { port, type, url } = event as Extract<SignalEvent, { type: string }>
      return port === number ? [{ type, url }] : []
    })
  }
}
