// A WebSocket on which only the server speaks: JSON messages, first `start`, last `exit` or `error`. Messages sent while
// the connection was broken are lost; `onReconnect` says so.
import type { RouteName, Shape } from '@islet/contract/client'
import { errorFromBody, type WireError } from '../errors.ts'
import { checkedMessage } from './checked.ts'
import type { Client } from './client.ts'
import { Connection, type ConnectionOptions } from './connection.ts'

const RECONNECT_MS = 60_000

export interface ChannelOptions<Message>
  extends Pick<ConnectionOptions, 'params' | 'onReconnect' | 'onEnd' | 'whyNot'> {
  /** The shape of a Message. */
  shape: Shape
  /** Called for all messages but `start`, `exit` and `error`. */
  onMessage(message: Message): void
}

/** Resolves when the server has sent `start`. */
export async function openChannel<Message extends { type: string }>(
  client: Client,
  route: RouteName,
  { shape, onMessage, ...options }: ChannelOptions<Message>,
): Promise<Connection> {
  const connection = new Connection(client, route, {
    ...options,
    reconnectMs: RECONNECT_MS,
    onFrame(data, onStart) {
      const message = checkedMessage<Message & { error?: WireError }>(shape, data)
      if (message?.type === 'start') onStart()
      else if (message?.type === 'exit') connection.end()
      else if (message?.type === 'error') connection.end(errorFromBody(message.error!))
      else if (message) onMessage(message)
    },
  })
  await connection.open()
  return connection
}
