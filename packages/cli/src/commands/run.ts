import type { AttachOptions, CreateOptions, PtyOptions, Sandbox } from '@islet/sdk'
import type { Command } from 'commander'
import { duration, many } from '../args/parse.ts'
import { addSandboxOptions, type SandboxFlags, toCreateOptions } from '../args/sandbox-options.ts'
import { addStdioOptions, passesStdin, type StdioFlags } from '../args/stdio.ts'
import { toCommand } from '../args/words.ts'
import { command, type JsonFlag } from '../command.ts'
import { connectOrEmbed } from '../connect.ts'
import { parseFileFlag } from '../copy/location.ts'
import { copyIn } from '../copy/upload.ts'
import { printJson } from '../output.ts'
import { CAPTURE, readable } from '../stdio/capture.ts'
import { followPiped, readStdin } from '../stdio/pipe.ts'
import { Signals } from '../stdio/signals.ts'
import { followTerminal, requireTerminal, terminalEnv } from '../stdio/terminal.ts'

interface RunFlags extends SandboxFlags, JsonFlag, StdioFlags {
  timeout?: number
  file?: string[]
}

export function run(): Command {
  const made = command(
    'run',
    'Run one command in a fresh sandbox, which is removed afterwards; needs no server.',
    "islet run 'python3 --version'\nislet run --memory 512Mi -- ls -la /\nislet run -it",
  ).argument('[command...]', 'one word is shell text; several are a program and its arguments')
  addSandboxOptions(made)
    .option('--timeout <duration>', 'kill the command after this long, like 30s (exit code 124)', duration)
    .option('--file <local:remote>', 'copy a file or directory in first (repeat)', many)
  return addStdioOptions(made, 'with this terminal; without a command: a shell').action(action)
}

async function action(words: string[], flags: RunFlags): Promise<void> {
  if (flags.tty) requireTerminal('islet run -i -- COMMAND')
  else toCommand(words, "islet run 'echo hello'")
  const files = (flags.file ?? []).map(parseFileFlag)
  const create: CreateOptions = toCreateOptions(flags)
  // Should this program be killed, nobody else removes it.
  const timeout = { ...create.timeout, onIdle: flags.onIdle ?? ('kill' as const) }
  using signals = new Signals()
  await using host = await connectOrEmbed()
  await using sandbox = await host.islet.sandboxes.create({
    ...create,
    timeout,
    keepAwake: false,
    signal: signals.aborted,
  })
  try {
    for (const { local, remote } of files) await copyIn(sandbox, local, remote, signals.aborted)
    process.exitCode = await runIn(sandbox, words, flags, signals)
  } finally {
    signals.hold()
  }
}

async function runIn(sandbox: Sandbox, words: string[], flags: RunFlags, signals: Signals): Promise<number> {
  const { timeout } = flags
  if (flags.tty) {
    const chosen = words.length > 0 ? { command: toCommand(words, '') } : {}
    const open = (terminal: PtyOptions) =>
      sandbox.pty.create({ ...terminal, ...chosen, timeout, env: terminalEnv(), signal: signals.aborted })
    return followTerminal(open, signals)
  }
  const chosen = toCommand(words, '')
  const stdin = passesStdin(flags)
  if (!flags.json) {
    // While this program lives it is attached, and the sandbox awake; when it is killed, nobody wants the command any more.
    const options = { timeout, stdin, keepAwake: false, signal: signals.aborted }
    const open = (handlers: AttachOptions) => sandbox.exec.start(chosen, { ...handlers, ...options })
    return followPiped(open, { stdin, signals })
  }
  const input = stdin ? await readStdin() : undefined
  const result = await sandbox.exec.run(chosen, {
    ...CAPTURE,
    timeout,
    stdin: input,
    signal: signals.aborted,
  })
  printJson({ sandboxId: sandbox.id, ...readable(result) })
  return result.exitCode
}
