// A command in a sandbox with our terminal: every key goes there, its screen comes here.
import type { PtyOptions, PtySession } from '@islet/sdk'
import { UsageError } from '../errors.ts'
import { writeAll } from '../output.ts'
import type { Signals } from './signals.ts'

// What a program that could not say goodbye may have left on: alternate screen, hidden cursor, mouse, paste marks, colour.
const LEAVE_FULL_SCREEN = '\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[0m\r\n'

/** Answers with the exit code. The terminal is as before when this ends, however it ends. */
export async function followTerminal(
  open: (options: PtyOptions) => Promise<PtySession>,
  signals: Signals,
): Promise<number> {
  const { stdin, stdout } = process
  const session = await open({ ...terminalSize(), onOutput: (data) => writeAll(stdout, data) })
  // Keys arrive as bytes; a signal comes from outside, as when a terminal window is closed.
  signals.passTo({ kill: (signal) => session.kill(signal === 'SIGKILL' ? signal : 'SIGHUP') })
  const send = (data: Buffer) => {
    session.send(data).catch(() => {}) // the session's end says what happened
  }
  const resize = () => {
    const { cols, rows } = terminalSize()
    session.resize(cols, rows)
  }
  stdin.setRawMode(true)
  stdin.on('data', send)
  stdout.on('resize', resize)
  try {
    return await session.done
  } catch (error) {
    stdout.write(LEAVE_FULL_SCREEN)
    throw error
  } finally {
    stdin.setRawMode(false)
    stdin.off('data', send).pause()
    stdout.off('resize', resize)
  }
}

/** Asked before anything is done. `instead` works without one. */
export function requireTerminal(instead: string): void {
  if (process.stdin.isTTY) return
  throw new UsageError('stdin is not a terminal.', `${instead} does without one.`)
}

/** What programs inside need to know about the terminal outside. */
export function terminalEnv(): Record<string, string> {
  const { TERM = 'xterm-256color', COLORTERM } = process.env
  return { TERM, ...(COLORTERM && { COLORTERM }) }
}

function terminalSize(): { cols: number; rows: number } {
  const { columns = 80, rows = 24 } = process.stdout.isTTY ? process.stdout : process.stderr
  // Some terminals say 0 until they are drawn.
  return { cols: columns || 80, rows: rows || 24 }
}
