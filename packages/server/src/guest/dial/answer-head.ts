// The beginning of an HTTP answer that comes from inside a sandbox. Node's parser bounds each head, but a program may send
// any number of informational answers (100, 102, 103) before the real one, and Node reads them as fast as they come.
import type { ClientRequest } from 'node:http'

/** Answers that are only informational. Servers send one or two. */
const MAX_INFORMATIONAL = 10
/** From the first byte of a head to its last. How long a program thinks before the first is not our business. */
const HEAD_MS = 60_000

/** Breaks a request whose answer begins with too many bytes, too many informational answers, or too slowly. */
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
    // After Node's own listener, so that a piece is parsed by now.
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
