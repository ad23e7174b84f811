// The beginning of a command's output, up to a bound, for the answer of an exec.
import { ByteBuffer } from './byte-buffer.ts'
import type { OutputListener } from './tracked.ts'

export interface CollectedOutput extends OutputListener {
  texts(encoding: 'utf8' | 'base64'): {
    stdout: string
    stderr: string
    truncated: boolean
    droppedBytes: number
  }
  /** Both channels, in the order they came; only of one that was asked to keep that. */
  together(encoding: 'utf8' | 'base64'): string
}

export function collectOutput(maxBytes: number, keep: { together?: boolean } = {}): CollectedOutput {
  const own = { stdout: new ByteBuffer(), stderr: new ByteBuffer() }
  const all = new ByteBuffer()
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
      own[channel].append(part)
      if (keep.together) all.append(part)
      room -= part.length
    },
    texts: (encoding) => ({
      stdout: own.stdout.bytes.toString(encoding),
      stderr: own.stderr.bytes.toString(encoding),
      truncated: droppedBytes > 0,
      droppedBytes,
    }),
    together: (encoding) => all.bytes.toString(encoding),
  }
}
