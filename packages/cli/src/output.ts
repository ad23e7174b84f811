// stdout is for data, stderr for messages. Only a terminal gets colours.
import { styleText } from 'node:util'
import type { JsonFlag } from './command.ts'
import { hintFor } from './hints.ts'

// The reader of the pipe has gone, as with `| head`.
process.stdout.on('error', handleStreamError)
process.stderr.on('error', handleStreamError)

const BROKEN_PIPE = 141
let whenBroken = (): void => process.exit(BROKEN_PIPE)

let isStatusShown = false

/** Shows progress in one line of the terminal; the next output replaces it. Prints nothing in a pipe. */
export function showStatus(text: string): void {
  if (!process.stderr.isTTY) return
  const columns = process.stderr.columns || 80
  // A wrapped line cannot be cleared.
  const line = text.length < columns ? text : `${text.slice(0, columns - 2)}…`
  process.stderr.write(`\r\x1b[K${line}`)
  isStatusShown = true
}

export function clearStatus(): void {
  if (isStatusShown) process.stderr.write('\r\x1b[K')
  isStatusShown = false
}

/** A line of data on stdout. */
export function print(line: string): void {
  clearStatus()
  process.stdout.write(`${line}\n`)
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2))
}

/** The whole result with --json, else the lines that show it. */
export function printResult(result: unknown, lines: string | readonly string[], { json }: JsonFlag): void {
  if (json) printJson(result)
  else for (const line of [lines].flat()) print(line)
}

/** A message on stderr. */
export function say(line: string): void {
  clearStatus()
  process.stderr.write(`${line}\n`)
}

/** Says how much of the output of a process is lost. */
export function sayDropped(bytes: number): void {
  if (bytes > 0) say(`islet: the first ${bytes} bytes of the output were dropped; they are not kept.`)
}

/** The last line: what to do next. */
export function sayHint(hint: string): void {
  say(`${paint('dim', 'hint:', process.stderr)} ${hint}`)
}

export type Colour = Parameters<typeof styleText>[0]

export function paint(colour: Colour, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(colour, text, { stream, validateStream: true })
}

export function reportFailure(error: unknown, { json }: { json: boolean }): void {
  const { code, message, hint } = describe(error)
  if (json) {
    say(JSON.stringify({ error: { code, message, hint } }))
    return
  }
  say(`${paint('red', 'islet:', process.stderr)} ${message}`)
  sayHint(hint)
}

function describe(error: unknown): { code: string; message: string; hint: string } {
  if (!(error instanceof Error))
    return { code: 'internal', message: String(error), hint: hintFor('internal') }
  if (error.name === 'AbortError')
    return { code: 'interrupted', message: 'Interrupted.', hint: 'Run it again.' }
  const { code: given, hint, message } = error as { code?: unknown; hint?: string; message: string }
  const code = typeof given === 'string' ? given : 'internal'
  return { code, message, hint: hintFor(code, hint) }
}

/** Resolves when the stream accepts more bytes, so a slow reader slows the sender. */
export function writeAll(stream: NodeJS.WriteStream, bytes: Uint8Array): void | Promise<void> {
  if (stream.isTTY) clearStatus()
  if (stream.write(bytes)) return
  return new Promise((resolve) => {
    const finish = (): void => {
      stream.off('drain', finish)
      stream.off('close', finish)
      resolve()
    }
    stream.on('drain', finish)
    stream.on('close', finish)
  })
}

export async function flush(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    if (stream.writable) await new Promise<void>((resolve) => stream.write('', () => resolve()))
  }
}

/** Called when the reader of our output has gone. Default: exit, as programs in a pipe do. */
export function onBrokenPipe(handle: () => void): void {
  whenBroken = handle
}

function handleStreamError(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  whenBroken()
}
