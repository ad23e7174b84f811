import type { Command } from 'commander'
import { addEnvOptions, type EnvFlags, toEnv } from '../args/env.ts'
import { duration, size } from '../args/parse.ts'
import { findSandbox } from '../args/sandbox.ts'
import { addStdioOptions, passesStdin, type StdioFlags } from '../args/stdio.ts'
import { commandAfter, toCommand } from '../args/words.ts'
import { command, type JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { UsageError } from '../errors.ts'
import { print, printJson } from '../output.ts'
import { CAPTURE, readable } from '../stdio/capture.ts'
import { followPiped, readStdin } from '../stdio/pipe.ts'
import { Signals } from '../stdio/signals.ts'
import { followTerminal, requireTerminal, terminalEnv } from '../stdio/terminal.ts'

interface ExecFlags extends EnvFlags, JsonFlag, StdioFlags {
  cwd?: string
  user?: string
  timeout?: number
  detach?: true
  keepAwake?: false
  keepOutput?: string
}

export function exec(): Command {
  const made = command(
    'exec',
    "Run a command in a sandbox; its exit code is the command's own.",
    "islet exec dev -- ls -la\necho hello | islet exec dev 'wc -c'\nislet exec -it dev -- python3",
  )
    .argument('<sandbox>', 'id, beginning of an id, or name')
    .argument('[command...]', 'one word is shell text; several are a program and its arguments')
  addEnvOptions(made)
    .option('-w, --cwd <path>', 'where it starts')
    .option('-u, --user <name>', 'who it runs as')
    .option('--timeout <duration>', 'kill it after this long, like 30s (exit code 124)', duration)
    .option('-d, --detach', 'start it and print its process id')
    .option('--keep-output <size>', 'how much of its output is kept for islet logs, like 64Mi', size)
    .option('--no-keep-awake', 'with --detach: let the sandbox go to sleep while it runs')
  return addStdioOptions(made, 'with this terminal; its keys go to the command').action(action)
}

async function action(text: string, words: string[], flags: ExecFlags, made: Command): Promise<void> {
  const example = flags.tty ? `islet sh ${text} opens a shell.` : `islet exec ${text} -- ls -la`
  const chosen = toCommand(commandAfter(text, words, made), example)
  if (flags.tty) requireTerminal(`islet exec -i ${text} -- COMMAND`)
  if (flags.keepAwake === false && !flags.detach)
    throw new UsageError('--no-keep-awake is for --detach.', 'A command that you wait for keeps it awake.')
  const sandbox = await findSandbox(connect(), text)
  const { cwd, user, timeout, keepOutput } = flags
  const options = { cwd, user, timeout, keepOutput, env: toEnv(flags) }
  if (flags.detach) {
    const process = await sandbox.exec.spawn(chosen, { ...options, keepAwake: flags.keepAwake })
    if (flags.json) printJson(process)
    else print(process.id)
    return
  }
  using signals = new Signals()
  if (flags.tty) {
    const env = { ...terminalEnv(), ...options.env }
    const open = (terminal: object) => sandbox.pty.create({ ...options, ...terminal, env, command: chosen })
    process.exitCode = await followTerminal(open, signals)
    return
  }
  const stdin = passesStdin(flags)
  if (flags.json) {
    const input = stdin ? await readStdin() : undefined
    const capture = { ...CAPTURE, stdin: input, signal: signals.aborted }
    const result = await sandbox.exec.run(chosen, { ...options, ...capture })
    printJson(readable(result))
    process.exitCode = result.exitCode
    return
  }
  const open = (handlers: object) => sandbox.exec.start(chosen, { ...options, ...handlers, stdin })
  process.exitCode = await followPiped(open, { stdin, signals })
}
