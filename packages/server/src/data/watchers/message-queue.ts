import type { WatcherMessage } from '@islet/contract'
import { BoundedQueue } from '../bounded-queue.ts'

/** Of a message beside its path and content. */
const MESSAGE_BYTES = 128
const OPTIONS = {
  maxMessages: 16_384,
  maxBytes: 32 * 1024 * 1024,
  sizeOf,
  overflow: { type: 'overflow' } as const,
}

/** What waits for one client of a watcher. */
export class MessageQueue extends BoundedQueue<WatcherMessage> {
  constructor() {
    super(OPTIONS)
  }
}

function sizeOf(message: WatcherMessage): number {
  if (message.type !== 'change') return MESSAGE_BYTES
  // In memory a character takes up to two bytes.
  return MESSAGE_BYTES + 2 * (message.path.length + (message.content?.length ?? 0))
}
