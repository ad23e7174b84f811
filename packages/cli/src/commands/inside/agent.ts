import { PERMISSION_MODES } from '@islet/contract/client'
import type { AgentEvent, AgentSessionInfo, McpServerConfig, Sandbox, StartAgentOptions } from '@islet/sdk'
import { type Command, Option } from 'commander'
import { addEnvOptions, type EnvFlags, toEnv } from '../../args/env.ts'
import { findProcess, findSandbox, withSandbox } from '../../args/find.ts'
import { integer, many, parseJson } from '../../args/parse.ts'
import { addUserOptions } from '../../args/stdio.ts'
import { addVerbs, type JsonFlag, sandboxCommand } from '../../command.ts'
import { connect } from '../../connect.ts'
import { UsageError } from '../../errors.ts'
import { clean, formatAge } from '../../format.ts'
import { paint, print, printResult, say } from '../../output.ts'
import { readText, readTextFile } from '../../stdio/input.ts'
import { Signals } from '../../stdio/signals.ts'
import { type Column, type ListFlags, printList } from '../../table.ts'

interface AgentFlags extends JsonFlag, EnvFlags {
  model?: string
  systemPrompt?: string
  allow?: string[]
  permissionMode?: StartAgentOptions['permissionMode']
  maxTurns?: number
  mcpConfig?: string
  resume?: string
  cwd?: string
  user?: string
  detach?: true
}

const INTERRUPTED = 130
const MAX_INPUT_LENGTH = 120

const columns: Column<AgentSessionInfo>[] = [
  ['SESSION', ({ sessionId }) => sessionId],
  ['STATUS', ({ running, exitCode }) => (running ? 'running' : `ended (${exitCode ?? 'lost'})`)],
  ['AGE', ({ startedAt }) => formatAge(startedAt)],
  ['CONVERSATION', ({ claudeSessionId }) => claudeSessionId ?? '-'],
]

export function agent(): Command {
  const made = sandboxCommand(
    'agent',
    'Give Claude a task in a sandbox and print what it says; Ctrl-C interrupts it. The sandbox needs the Claude Agent SDK and an API key.',
    "islet create --runtime claude --name dev --network --env ANTHROPIC_API_KEY\nislet agent dev 'fix the failing test'\nislet agent ls dev",
  )
    .argument('[prompt]', 'the task; - or nothing reads stdin')
    .option('-m, --model <name>', 'the model; default: the one of the Agent SDK')
    .option('--system-prompt <text>', 'replace the system prompt of Claude Code')
    .option('--allow <tool>', 'give it only these tools, like Read or Bash(git *) (repeat)', many)
    .addOption(new Option('--permission-mode <mode>', 'default: bypassPermissions').choices(PERMISSION_MODES))
    .option('--max-turns <count>', 'ask the model at most this often; default: 50', integer)
    .option('--mcp-config <path>', 'local JSON file with mcpServers')
    .option('--resume <conversation>', 'continue an earlier conversation of the sandbox')
    .option('-d, --detach', 'leave it working and print the id of the session')
  return addVerbs(addUserOptions(addEnvOptions(made)).action(action), [ls(), attach()])
}

async function action(text: string, word: string | undefined, flags: AgentFlags): Promise<void> {
  const missing = new UsageError('There is no prompt.', `islet agent ${text} 'fix the failing test'`)
  const prompt = word === undefined || word === '-' ? await readText(word, missing) : word
  const { model, systemPrompt, allow: allowedTools, permissionMode, maxTurns, resume, cwd, user } = flags
  const mcpServers = flags.mcpConfig === undefined ? undefined : readServers(flags.mcpConfig)
  const config = { model, systemPrompt, allowedTools, permissionMode, maxTurns, resume, mcpServers }
  const sandbox = await findSandbox(connect(), text)
  using signals = new Signals()
  const view = new View(flags)
  const session = await sandbox.agent.start({
    ...config,
    ...{ prompt, cwd, user, env: toEnv(flags), signal: signals.aborted },
    ...(!flags.detach && view.handlers),
  })
  if (flags.detach) {
    session.close()
    return printResult({ sandboxId: sandbox.id, sessionId: session.sessionId }, session.sessionId, flags)
  }
  const left = Promise.withResolvers<'left'>()
  signals.passTo({
    kill: async (signal) => (signal === 'SIGKILL' ? left.resolve('left') : session.interrupt()),
  })
  const outcome = await Promise.race([view.turn, session.done, left.promise])
  if (outcome === 'left') {
    say(`islet: it goes on; islet agent attach ${text} ${session.sessionId} follows it.`)
    process.exitCode = INTERRUPTED
  } else {
    process.exitCode = exitCodeOf(outcome, view)
    await session.kill().catch(() => {}) // it has ended by itself
    if (session.claudeSessionId && process.stderr.isTTY)
      say(paint('dim', `--resume ${session.claudeSessionId} continues this conversation.`, process.stderr))
  }
  session.close()
}

/** A number: the agent ended in the middle of the turn. */
function exitCodeOf(outcome: 'complete' | 'interrupted' | number, { hasFailed }: View): number {
  if (outcome === 'interrupted') return INTERRUPTED
  return outcome === 'complete' && !hasFailed ? 0 : 1
}

function ls(): Command {
  return sandboxCommand('ls', 'List the agent sessions of a sandbox.', 'islet agent ls dev')
    .alias('list')
    .option('-q, --quiet', 'print only ids')
    .action(
      withSandbox(async (sandbox: Sandbox, flags: ListFlags) => {
        const none = `${sandbox.id} had no agent sessions yet. islet agent ${sandbox.id} PROMPT starts one.`
        const key = ({ sessionId }: AgentSessionInfo) => sessionId
        printList(await sandbox.agent.list(), flags, { columns, none, key })
      }),
    )
}

function attach(): Command {
  const summary = 'Print what an agent did and does, until it ends or Ctrl-C; the agent goes on.'
  return sandboxCommand('attach', summary, 'islet agent attach dev prc-8f3')
    .argument('<process>', 'id of the session, or an id prefix')
    .action(
      withSandbox(async (sandbox: Sandbox, wanted: string, flags: JsonFlag) => {
        using signals = new Signals()
        const { id } = await findProcess(sandbox, wanted)
        const session = await sandbox.agent.attach(id, new View(flags).handlers)
        const interrupted = signals.untilInterrupted()
        await Promise.race([session.done, interrupted.promise])
        session.close()
      }),
    )
}

/** Text of the agent goes to stdout, what it does to stderr; with --json, every event goes to stdout. */
class View {
  /** How the first turn ends. */
  readonly turn: Promise<'complete' | 'interrupted'>
  hasFailed = false
  readonly handlers: Pick<StartAgentOptions, 'onEvent' | 'onError' | 'onExit'>

  constructor({ json }: JsonFlag) {
    const ended = Promise.withResolvers<'complete' | 'interrupted'>()
    this.turn = ended.promise
    this.handlers = {
      onEvent: (event) => {
        if (event.type === 'error' || event.is_error) this.hasFailed = true
        if (json) print(JSON.stringify(event))
        else show(event)
        if (event.type === 'turn_complete') ended.resolve('complete')
        if (event.type === 'interrupted') ended.resolve('interrupted')
      },
      onError: (text) => {
        for (const line of text.trimEnd().split('\n')) say(paint('dim', clean(line), process.stderr))
      },
    }
  }
}

function show(event: AgentEvent): void {
  const { type, subtype, message } = event
  if (type === 'error') say(`islet: ${clean(String(message))}`)
  if (type === 'result' && subtype !== 'success') say(`islet: the turn ended: ${clean(String(subtype))}`)
  if (type === 'interrupted') say('islet: interrupted.')
  if (type === 'assistant') for (const block of blocksOf(message)) showBlock(block)
}

function showBlock({ type, text, name, input }: Record<string, unknown>): void {
  if (type === 'text')
    for (const line of String(text).replaceAll('\t', '    ').split('\n')) print(clean(line))
  if (type !== 'tool_use') return
  const shown = JSON.stringify(input) ?? ''
  const cut = shown.length > MAX_INPUT_LENGTH ? `${shown.slice(0, MAX_INPUT_LENGTH)}…` : shown
  say(paint('dim', clean(`> ${name} ${cut}`), process.stderr))
}

function blocksOf(message: unknown): Record<string, unknown>[] {
  const { content } = (message ?? {}) as { content?: unknown }
  return Array.isArray(content) ? content : []
}

/** As Claude Code has it: `{"mcpServers": {...}}`, or only what is in it. */
function readServers(path: string): Record<string, McpServerConfig> {
  const value = parseJson(
    readTextFile(path),
    `${path} must be like {"mcpServers": {"NAME": {"command": "…"}}}.`,
  )
  return value?.mcpServers ?? value
}
