// The last lines of an installer's output. It comes from inside a sandbox: lines are bounded, and only printable text passes.
import { stripVTControlCharacters } from 'node:util'
import type { OutputChannel } from '../../guest/guest.ts'

const MAX_LINES = 40
const MAX_CHARS = 1000

export class Tail {
  readonly #onLine: ((line: string) => void) | undefined
  readonly #parts = { stdout: part(), stderr: part() }
  readonly #lines: string[] = []

  constructor(onLine?: (line: string) => void) {
    this.#onLine = onLine
  }

  push(channel: OutputChannel, bytes: Uint8Array): void {
    const found = this.#parts[channel]
    const lines = (found.rest + found.decoder.decode(bytes, { stream: true })).split(/[\r\n]+/)
    // The end of an endless line is not kept.
    found.rest = lines.pop()!.slice(0, MAX_CHARS)
    for (const line of lines) this.#take(line)
  }

  end(): string[] {
    for (const { rest } of Object.values(this.#parts)) this.#take(rest)
    return this.#lines
  }

  #take(raw: string): void {
    const line = clean(raw)
    if (line === '') return
    this.#lines.push(line)
    if (this.#lines.length > MAX_LINES) this.#lines.shift()
    this.#onLine?.(line)
  }
}

function part(): { decoder: TextDecoder; rest: string } {
  return { decoder: new TextDecoder(), rest: '' }
}

function clean(raw: string): string {
  const text = stripVTControlCharacters(raw.slice(0, MAX_CHARS)).replaceAll(/\p{Cc}/gu, ' ')
  // The URL of a registry may contain a password.
  return text.replaceAll(/:\/\/[^/\s@]*@/g, '://').trimEnd()
}
