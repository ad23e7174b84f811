// The beginning of a command's output, up to a bound, for the answer of an exec.
import type { OutputChannel } from '../guest/guest.ts'
import type { OutputListener } from './tracked.ts'

export interface CollectedOutput extends OutputListener {
  texts(encoding: 'utf8' | 'base64'): { stdout: string; stderr: string; truncated: boolean }
}

export function collectOutput(maxBytes: number): CollectedOutput {
  const parts: Record<OutputChannel, Buffer[]> = { stdout: [], stderr: [] }
  let room = maxBytes
  let truncated = false
  return {
    get full() {
      return room === 0
    },
    output(channel, bytes) {
      if (bytes.length > room) truncated = true
      if (room === 0) return
      parts[channel].push(Buffer.from(bytes.subarray(0, room)))
      room -= Math.min(room, bytes.length)
    },
    texts: (encoding) => ({
      stdout: Buffer.concat(parts.stdout).toString(encoding),
      stderr: Buffer.concat(parts.stderr).toString(encoding),
      truncated,
    }),
  }
}
