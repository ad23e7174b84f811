// Bounds the head of an HTTP answer from inside a sandbox. Node's parser bounds each head, but a program may send any number of
// informational answers (100, 102, 103) before the real one, and Node reads them as fast as they come.
import type { ClientRequest } from 'node:http'

/** Informational answers before the real one. Honest servers send one or two. */
const MAX_INFORMATIONAL = 10
/** From the first byte of a head to its last. How long a program thinks before the first byte is not limited here. */
const HEAD_MS = 60_000

/** Destroys a request whose answer has a head that is too large or too slow, or too many informational answers. */
export function boundHead(asked: ClientRequest, { maxBytes }: { maxBytes: number }): void {
  let bytes = 0
  let informational = 0
  let isWhole = false
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  const refuse = (why: string): void => {
    clearTimeout(timer)
    asked.destroy(new Error(why))
  }
  asked.once('socket', (socket) => {
    // Runs after Node's own listener, so the piece is parsed already.
    const count = (piece: Buffer): void => {
      if (isOver) return
      bytes += piece.length
      if (isWhole) clearTimeout(timer)
      if (bytes > maxBytes) refuse('the head of the answer is too large')
      else if (isWhole) timer = undefined
      else timer ??= setTimeout(refuse, HEAD_MS, 'the head of the answer is too slow')
      isWhole = false
    }
    const stop = (): void => {
      isOver = true
      clearTimeout(timer)
      socket.off('data', count)
    }
    socket.on('data', count)
    for (const event of ['response', 'upgrade', 'close']) asked.once(event, stop)
  })
  asked.on('information', () => {
    isWhole = true
    if (++informational > MAX_INFORMATIONAL) refuse('there are too many informational answers')
  })
}
