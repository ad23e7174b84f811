// The output of one run: bounded, and decoded at the end, so that no character is cut between two chunks.
import { constants } from 'node:os'
import { StringDecoder } from 'node:string_decoder'
import type { SandboxRunResult } from '../types.ts'

/** stdout and stderr together. */
export const MAX_OUTPUT_BYTES = 16 * 1024 * 1024
export const TIMED_OUT = 124

export class Output {
  readonly #chunks: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] }
  #room = MAX_OUTPUT_BYTES
  #truncated = false

  add(channel: 'stdout' | 'stderr', chunk: Buffer): void {
    const kept = chunk.subarray(0, this.#room)
    this.#room -= kept.length
    if (kept.length > 0) this.#chunks[channel].push(kept)
    if (kept.length < chunk.length) this.#truncated = true
  }

  result(exitCode: number, timedOut: boolean): SandboxRunResult {
    const stdout = this.#text('stdout')
    const stderr = this.#text('stderr')
    const code = timedOut ? TIMED_OUT : exitCode
    return { output: stdout + stderr, exitCode: code, timedOut, stdout, stderr, truncated: this.#truncated }
  }

  #text(channel: 'stdout' | 'stderr'): string {
    const bytes = Buffer.concat(this.#chunks[channel])
    // A character that the limit has cut is left out.
    return this.#truncated ? new StringDecoder('utf8').write(bytes) : bytes.toString()
  }
}

export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal ? constants.signals[signal] : 0)
}
