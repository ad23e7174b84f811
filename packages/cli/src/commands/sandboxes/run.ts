import type { Command } from 'commander'
import { addSandboxOptions, type SandboxFlags, toCreateOptions } from '../../args/sandbox-options.ts'
import {
  addFileOption,
  addStdioOptions,
  addTimeoutOption,
  type FileFlags,
  type StdioFlags,
} from '../../args/stdio.ts'
import { COMMAND, toCommand } from '../../args/words.ts'
import { command, type JsonFlag } from '../../command.ts'
import { connectOrEmbed } from '../../connect.ts'
import { toFiles } from '../../copy/location.ts'
import { copyIn } from '../../copy/upload.ts'
import { clearStatus, say } from '../../output.ts'
import { runInForeground, runInTerminal } from '../../stdio/foreground.ts'
import { Signals } from '../../stdio/signals.ts'
import { requireTerminal } from '../../stdio/terminal.ts'

interface RunFlags extends SandboxFlags, JsonFlag, StdioFlags, FileFlags {
  timeout?: number
}

export function run(): Command {
  const made = command(
    'run',
    'Run one command in a new sandbox and remove the sandbox; needs no server.',
    "islet run 'python3 --version'\nislet run --memory 512Mi -- ls -la /\nislet run -it",
  ).argument('[command...]', COMMAND)
  addFileOption(addTimeoutOption(addSandboxOptions(made)))
  return addStdioOptions(made, 'use this terminal; without a command: a shell').action(action)
}

async function action(words: string[], flags: RunFlags): Promise<void> {
  if (flags.tty) requireTerminal('islet run -i -- COMMAND')
  else toCommand(words, "islet run 'echo hello'")
  const files = toFiles(flags.file)
  const create = toCreateOptions(flags)
  // If this program is killed, the idle timeout removes the sandbox.
  const timeout = { ...create.timeout, onIdle: flags.onIdle ?? ('kill' as const) }
  using signals = new Signals()
  await using server = await connectOrEmbed()
  await using sandbox = await server.islet.sandboxes.create({
    ...create,
    timeout,
    keepAwake: false,
    signal: signals.aborted,
  })
  clearStatus()
  if (sandbox.url) say(sandbox.url)
  try {
    for (const { local, remote } of files) await copyIn(sandbox, local, remote, signals.aborted)
    const options = { timeout: flags.timeout }
    const chosen = words.length > 0 ? toCommand(words, '') : undefined
    // If this program is killed, the command must not keep the sandbox awake.
    const foreground = { flags, options, signals, keepAwake: false, jsonFields: { sandboxId: sandbox.id } }
    process.exitCode = flags.tty
      ? await runInTerminal(sandbox, chosen, options, signals)
      : await runInForeground(sandbox, chosen!, foreground)
  } finally {
    signals.startCleanup()
  }
}
