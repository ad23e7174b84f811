// A command in a sandbox with our terminal: keys go to the command, its screen is shown here.
import type { PtyOptions, PtySession } from '@islet/sdk'
import { UsageError } from '../errors.ts'
import { writeAll } from '../output.ts'
import type { Signals } from './signals.ts'

// Undoes what a program that was cut off may have left on: alternate screen, hidden cursor, mouse, paste marks, colour.
const LEAVE_FULL_SCREEN = '\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[0m\r\n'

/** Answers with the exit code. The terminal is restored in every case. */
export async function followTerminal(
  open: (options: PtyOptions) => Promise<PtySession>,
  signals: Signals,
): Promise<number> {
  const { stdin, stdout } = process
  const session = await open({ ...terminalSize(), onOutput: (data) => writeAll(stdout, data) })
  // Ctrl-C arrives as a key. A signal comes from outside, for example when the terminal window is closed.
  signals.passTo({ kill: (signal) => session.kill(signal === 'SIGKILL' ? signal : 'SIGHUP') })
  const send = (data: Buffer) => {
    session.send(data).catch(() => {}) // session.done reports the failure
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

/** Throws if stdin is not a terminal. `instead` is a command that works without one. */
export function requireTerminal(instead: string): void {
  if (process.stdin.isTTY) return
  throw new UsageError('stdin is not a terminal.', `${instead} works without one.`)
}

/** The variables that describe our terminal to programs in the sandbox. */
export function terminalEnv(): Record<string, string> {
  const { TERM = 'xterm-256color', COLORTERM } = process.env
  return { TERM, ...(COLORTERM && { COLORTERM }) }
}

function terminalSize(): { cols: number; rows: number } {
  const { columns = 80, rows = 24 } = process.stdout.isTTY ? process.stdout : process.stderr
  // Some terminals report 0 until they are drawn.
  return { cols: columns || 80, rows: rows || 24 }
}
