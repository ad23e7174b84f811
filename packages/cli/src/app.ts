// The table of all commands. The program, its help and the shell completions come from it.
import { type Argument, Command } from 'commander'
import { pathOf, walk } from './command.ts'
import { cp } from './commands/files/cp.ts'
import { env } from './commands/files/env.ts'
import { overlay } from './commands/files/overlay.ts'
import { url } from './commands/files/url.ts'
import { watch } from './commands/files/watch.ts'
import { agent } from './commands/inside/agent.ts'
import { code } from './commands/inside/code.ts'
import { exec } from './commands/inside/exec.ts'
import { kill } from './commands/inside/kill.ts'
import { logs } from './commands/inside/logs.ts'
import { ports } from './commands/inside/ports.ts'
import { preview } from './commands/inside/preview.ts'
import { ps } from './commands/inside/ps.ts'
import { service } from './commands/inside/service.ts'
import { sh } from './commands/inside/sh.ts'
import { signal, signals } from './commands/inside/signals.ts'
import { store } from './commands/inside/store.ts'
import { create } from './commands/sandboxes/create.ts'
import { events } from './commands/sandboxes/events.ts'
import { info } from './commands/sandboxes/info.ts'
import { link } from './commands/sandboxes/link.ts'
import { ls } from './commands/sandboxes/ls.ts'
import { network } from './commands/sandboxes/network.ts'
import { rm } from './commands/sandboxes/rm.ts'
import { run } from './commands/sandboxes/run.ts'
import { hibernate, pause, resume, wake } from './commands/sandboxes/suspend.ts'
import { timeout } from './commands/sandboxes/timeout.ts'
import { token } from './commands/sandboxes/token.ts'
import { update } from './commands/sandboxes/update.ts'
import { checkpoint } from './commands/saved/checkpoint.ts'
import { fork } from './commands/saved/fork.ts'
import { restore } from './commands/saved/restore.ts'
import { snapshot } from './commands/saved/snapshot.ts'
import { completeCommand } from './commands/server/complete.ts'
import { completion } from './commands/server/completion.ts'
import { doctor } from './commands/server/doctor.ts'
import { image } from './commands/server/image.ts'
import { prune } from './commands/server/prune.ts'
import { runtimes } from './commands/server/runtimes.ts'
import { serve } from './commands/server/serve.ts'
import { setup } from './commands/server/setup.ts'
import { version } from './commands/server/version.ts'
import { paint } from './output.ts'
import { VERSION } from './version.ts'

/** In the order of the help. */
const GROUPS: Record<string, readonly (() => Command)[]> = {
  'Sandboxes:': [run, create, ls, info, update, network, rm],
  'Inside a sandbox:': [exec, code, sh, agent, ps, kill, logs, service],
  'Files:': [cp, url, env, overlay, watch],
  'Ports, signals, store:': [ports, preview, signals, signal, store],
  'Access for others:': [token, link],
  'Suspending and history:': [pause, resume, hibernate, wake, timeout, events],
  'Saved states:': [checkpoint, restore, fork, snapshot],
  'Images:': [image, runtimes],
  'The server and this machine:': [serve, setup, doctor, prune, completion, version],
}

const VARIABLES = `
Environment:
  ISLET_URL       address of the server; default: its socket in the data directory, else http://127.0.0.1:7400
  ISLET_API_KEY   key of the server; default: the file key in the data directory
  ISLET_DATA_DIR  data directory; default: /var/lib/islet for root, else ~/.local/share/islet
  NO_COLOR        disables colours
  islet serve reads its settings from the environment too; islet serve --help names them.`

/**
 * Words after the sandbox belong to the command that runs in it, with their options. Only `service start` takes its own
 * options after the name, if a `--` separates them from the command. With `json`, the caller reports usage errors.
 */
export function createProgram({ hasSeparator = false, json = false } = {}): Command {
  const program = new Command('islet')
    .description('Gives every AI agent its own Linux computer.')
    .version(VERSION, '-V, --version')
    .enablePositionalOptions()
    .addHelpText('after', `${VARIABLES}\n\nExample:\n  islet run 'echo hello from $(hostname)'`)
  for (const [heading, commands] of Object.entries(GROUPS)) {
    program.commandsGroup(heading)
    for (const make of commands) program.addCommand(make())
  }
  program.helpCommand(true)
  program.addCommand(completeCommand(program), { hidden: true })
  for (const command of walk(program)) {
    command.configureHelp({ subcommandTerm })
    command.exitOverride().showHelpAfterError(`hint: ${pathOf(command)} --help shows how.`)
    command.configureOutput({ outputError: (text, write) => write(asOurs(text)) })
    if (json) command.configureOutput({ outputError: () => {} }).showHelpAfterError(false)
    if (takesCommand(command))
      command.passThroughOptions(pathOf(command) !== 'islet service start' || !hasSeparator)
  }
  return program
}

function takesCommand(command: Command): boolean {
  return command.registeredArguments.some((argument) => argument.name() === 'command')
}

/** Usage errors start with `islet:`, like all other errors. */
function asOurs(text: string): string {
  return text.replace(/^error:/, paint('red', 'islet:', process.stderr))
}

/** Without the `[options]` that commander adds to every command. */
function subcommandTerm(command: Command): string {
  const names = [command.name(), ...command.aliases()].join('|')
  const words = command.registeredArguments.map((argument) => argumentTerm(argument))
  return [names, ...words].join(' ')
}

function argumentTerm(argument: Argument): string {
  const name = argument.name() + (argument.variadic ? '...' : '')
  return argument.required ? `<${name}>` : `[${name}]`
}
