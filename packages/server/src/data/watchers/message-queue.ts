import type { WatcherMessage } from '@islet/contract'
import { BoundedQueue, type Budget } from '../bounded-queue.ts'

/** Of a message beside its path and content. */
const MESSAGE_BYTES = 128
const OPTIONS = {
  maxMessages: 16_384,
  maxBytes: 32 * 1024 * 1024,
  sizeOf,
  overflow: { type: 'overflow' } as const,
}

/** For all clients of all watchers of a sandbox. */
export const MAX_SANDBOX_BYTES = 96 * 1024 * 1024

/** What waits for one client of a watcher. */
export class MessageQueue extends BoundedQueue<WatcherMessage> {
  /** `shared`: with the other watchers of the sandbox. */
  constructor(shared?: Budget) {
    super({ ...OPTIONS, shared })
  }
}

function sizeOf(message: WatcherMessage): number {
  if (message.type !== 'change') return MESSAGE_BYTES
  // In memory a character takes up to two bytes.
  return MESSAGE_BYTES + 2 * (message.path.length + (message.content?.length ?? 0))
}
