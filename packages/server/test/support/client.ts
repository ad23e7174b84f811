import { once } from 'node:events'
import { type AttachServerMessage, attachServerMessage } from '@islet/contract'
import { type ClientOptions, WebSocket } from 'ws'
import { TEST_KEY, until } from './server.ts'

export const AUTHORIZED: ClientOptions = { headers: { authorization: `Bearer ${TEST_KEY}` } }

/** An attached client that writes down what it sees. */
export class Client {
  readonly socket: WebSocket
  readonly messages: AttachServerMessage[] = []
  readonly bytes: Buffer[] = []
  readonly closed: Promise<number>

  constructor(url: string, protocols: string[] = [], options: ClientOptions = AUTHORIZED) {
    this.socket = new WebSocket(url, protocols, options)
    this.closed = once(this.socket, 'close').then(([code]) => code as number)
    this.socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.bytes.push(data)
      else this.messages.push(attachServerMessage.parse(JSON.parse(data.toString())))
    })
  }

  /** Once it has all that was printed before it came. */
  static async open(...args: ConstructorParameters<typeof Client>): Promise<Client> {
    const client = new Client(...args)
    await until(() => client.types.includes('replay-end'))
    return client
  }

  get types(): string[] {
    return this.messages.map(({ type }) => type)
  }

  /** The output of a channel: 1 stdout, 2 stderr. */
  output(channel: number): Buffer {
    return Buffer.concat(this.bytes.filter((frame) => frame[0] === channel).map((frame) => frame.subarray(1)))
  }

  text(channel: number): string {
    return this.output(channel).toString()
  }

  send(message: object): void {
    this.socket.send(JSON.stringify(message))
  }

  async exitCode(): Promise<number | undefined> {
    await this.closed
    const last = this.messages.at(-1)
    return last?.type === 'exit' ? last.exitCode : undefined
  }

  async error(): Promise<{ code: string | undefined; closed: number }> {
    const closed = await this.closed
    const last = this.messages.at(-1)
    return { code: last?.type === 'error' ? last.error.code : undefined, closed }
  }
}
