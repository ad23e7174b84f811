// Runs a command in a sandbox and waits for its end: with our terminal, with our pipes, or captured for --json.
import type { Sandbox } from '@islet/sdk'
import { passesStdin, type StdioFlags } from '../args/stdio.ts'
import type { JsonFlag } from '../command.ts'
import { printJson } from '../output.ts'
import { CAPTURE, readable } from './capture.ts'
import { readStdin } from './input.ts'
import { followPiped } from './pipe.ts'
import type { Signals } from './signals.ts'
import { followTerminal, terminalEnv } from './terminal.ts'

export type CommandWords = string | string[]

export interface CommandOptions {
  cwd?: string
  user?: string
  timeout?: number
  keepOutput?: string
  env?: Record<string, string>
}

interface Foreground {
  flags: JsonFlag & StdioFlags
  options: CommandOptions
  signals: Signals
  /** Whether the process itself keeps the sandbox awake; our session does in any case. Default: true. */
  keepAwake?: boolean
  /** Printed before the result with --json. */
  jsonFields?: object
}

/** Answers with the exit code. */
export async function runInForeground(
  sandbox: Sandbox,
  command: CommandWords,
  { flags, options, signals, keepAwake, jsonFields }: Foreground,
): Promise<number> {
  const stdin = passesStdin(flags)
  const signal = signals.aborted
  if (flags.json) {
    const input = stdin ? await readStdin() : undefined
    const result = await sandbox.exec.run(command, { ...CAPTURE, ...options, stdin: input, signal })
    printJson({ ...jsonFields, ...readable(result) })
    return result.exitCode
  }
  const open = (handlers: object) =>
    sandbox.exec.start(command, { ...handlers, ...options, stdin, keepAwake, signal })
  return followPiped(open, { stdin, signals })
}

/** Answers with the exit code. Without a command: a login shell. */
export function runInTerminal(
  sandbox: Sandbox,
  command: CommandWords | undefined,
  options: CommandOptions,
  signals: Signals,
): Promise<number> {
  const env = { ...terminalEnv(), ...options.env }
  const signal = signals.aborted
  const chosen = command === undefined ? {} : { command }
  const open = (terminal: object) => sandbox.pty.create({ ...options, ...terminal, ...chosen, env, signal })
  return followTerminal(open, signals)
}
