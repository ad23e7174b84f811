// The first bytes of a command's output, for the answer of an exec.
import { type KeptBytes, type LongText, release } from '../output/kept-bytes.ts'
import type { OutputListener } from './tracked.ts'

export interface CollectedOutput extends OutputListener, Disposable {
  texts(encoding: 'utf8' | 'base64'): {
    stdout: string | LongText
    stderr: string | LongText
    truncated: boolean
    droppedBytes: number
  }
  /** Both channels in the order they came; empty unless `together` was asked for. */
  together(encoding: 'utf8' | 'base64'): string | LongText
}

export function collectOutput(
  maxBytes: number,
  keep: { together?: boolean; bytes(): KeptBytes },
): CollectedOutput {
  const own = { stdout: keep.bytes(), stderr: keep.bytes() }
  const all = keep.together ? keep.bytes() : undefined
  let room = maxBytes
  let droppedBytes = 0
  return {
    get full() {
      return room === 0
    },
    output(channel, bytes) {
      droppedBytes += Math.max(0, bytes.length - room)
      if (room === 0) return
      const part = bytes.subarray(0, room)
      all?.append(part)
      if (own[channel].append(part)) {
        room -= part.length
      } else {
        room = 0
        droppedBytes += part.length
      }
    },
    texts: (encoding) => ({
      stdout: own.stdout.text(encoding),
      stderr: own.stderr.text(encoding),
      truncated: droppedBytes > 0,
      droppedBytes,
    }),
    together: (encoding) => all?.text(encoding) ?? '',
    [Symbol.dispose]: () => release([own.stdout, own.stderr, all]),
  }
}
