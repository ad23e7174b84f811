// The beginning of a command's output, up to a bound, for the answer of an exec.
import type { OutputChannel } from '../guest/guest.ts'
import type { OutputPiece } from './output-reader.ts'
import type { OutputListener } from './tracked.ts'

export interface CollectedOutput extends OutputListener {
  texts(encoding: 'utf8' | 'base64'): {
    stdout: string
    stderr: string
    truncated: boolean
    droppedBytes: number
  }
  /** Both channels, in the order they came. */
  together(encoding: 'utf8' | 'base64'): string
}

export function collectOutput(maxBytes: number): CollectedOutput {
  const pieces: OutputPiece[] = []
  let room = maxBytes
  let droppedBytes = 0
  const bytesOf = (channel: OutputChannel) =>
    Buffer.concat(pieces.filter((piece) => piece.channel === channel).map(({ bytes }) => bytes))
  return {
    get full() {
      return room === 0
    },
    output(channel, bytes) {
      droppedBytes += Math.max(0, bytes.length - room)
      if (room === 0) return
      pieces.push({ channel, bytes: Buffer.from(bytes.subarray(0, room)) })
      room -= Math.min(room, bytes.length)
    },
    texts: (encoding) => ({
      stdout: bytesOf('stdout').toString(encoding),
      stderr: bytesOf('stderr').toString(encoding),
      truncated: droppedBytes > 0,
      droppedBytes,
    }),
    together: (encoding) => Buffer.concat(pieces.map(({ bytes }) => bytes)).toString(encoding),
  }
}
