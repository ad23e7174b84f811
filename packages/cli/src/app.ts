// Every command, once: the program, its help and the shell completions come from this table.
import { type Argument, Command } from 'commander'
import { pathOf, walk } from './command.ts'
import { completeCommand } from './commands/__complete.ts'
import { checkpoint } from './commands/checkpoint.ts'
import { code } from './commands/code.ts'
import { completion } from './commands/completion.ts'
import { cp } from './commands/cp.ts'
import { create } from './commands/create.ts'
import { doctor } from './commands/doctor.ts'
import { env } from './commands/env.ts'
import { events } from './commands/events.ts'
import { exec } from './commands/exec.ts'
import { fork } from './commands/fork.ts'
import { hibernate } from './commands/hibernate.ts'
import { image } from './commands/image.ts'
import { info } from './commands/info.ts'
import { kill } from './commands/kill.ts'
import { logs } from './commands/logs.ts'
import { ls } from './commands/ls.ts'
import { network } from './commands/network.ts'
import { overlay } from './commands/overlay.ts'
import { pause } from './commands/pause.ts'
import { ports } from './commands/ports.ts'
import { preview } from './commands/preview.ts'
import { prune } from './commands/prune.ts'
import { ps } from './commands/ps.ts'
import { restore } from './commands/restore.ts'
import { resume } from './commands/resume.ts'
import { rm } from './commands/rm.ts'
import { run } from './commands/run.ts'
import { runtimes } from './commands/runtimes.ts'
import { serve } from './commands/serve.ts'
import { service } from './commands/service.ts'
import { setup } from './commands/setup.ts'
import { sh } from './commands/sh.ts'
import { signal } from './commands/signal.ts'
import { signals } from './commands/signals.ts'
import { snapshot } from './commands/snapshot.ts'
import { store } from './commands/store.ts'
import { timeout } from './commands/timeout.ts'
import { token } from './commands/token.ts'
import { update } from './commands/update.ts'
import { url } from './commands/url.ts'
import { version } from './commands/version.ts'
import { wake } from './commands/wake.ts'
import { watch } from './commands/watch.ts'
import { paint } from './output.ts'
import { VERSION } from './version.ts'

/** As the help shows them. */
const GROUPS: Record<string, readonly (() => Command)[]> = {
  'Sandboxes:': [run, create, ls, info, update, network, rm],
  'Inside a sandbox:': [exec, code, sh, ps, kill, logs, service],
  'Files:': [cp, url, env, overlay, watch],
  'Ports, signals, store:': [ports, preview, signals, signal, store, token],
  'Standing still and going on:': [pause, resume, hibernate, wake, timeout, events],
  'Saved states:': [checkpoint, restore, fork, snapshot],
  'Images:': [image, runtimes],
  'The server and this machine:': [serve, setup, doctor, prune, completion, version],
}

const VARIABLES = `
Environment:
  ISLET_URL       where the server is; default: its socket in the data directory, else http://127.0.0.1:7400
  ISLET_API_KEY   its key; default: the file key in the data directory, for a server on this machine
  ISLET_DATA_DIR  the data directory; default /var/lib/islet for root, else ~/.local/share/islet
  NO_COLOR        no colours
  islet serve takes its settings from the environment too; islet serve --help names them.`

/**
 * The first word after the sandbox begins the command, options and all; only those of a service may stand between its name
 * and a `--`. With `json`, what is wrong with the words is left to the caller to report.
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

/** Usage errors begin with `islet:` and end with a hint, as all other errors do. */
function asOurs(text: string): string {
  return text.replace(/^error:/, paint('red', 'islet:', process.stderr))
}

/** Every command has options; saying so for each only makes the table wider. */
function subcommandTerm(command: Command): string {
  const names = [command.name(), ...command.aliases()].join('|')
  const words = command.registeredArguments.map((argument) => argumentTerm(argument))
  return [names, ...words].join(' ')
}

function argumentTerm(argument: Argument): string {
  const name = argument.name() + (argument.variadic ? '...' : '')
  return argument.required ? `<${name}>` : `[${name}]`
}
