// Runs inside a sandbox and drives the Claude Agent SDK that is installed there. One JSON object per line:
//
//   stdin    {"type":"configure", model?, systemPrompt?, allowedTools?, permissionMode?, maxTurns?, cwd?, mcpServers?, resume?}
//            {"type":"prompt", "text", "resume"?}     {"type":"interrupt"}
//   stdout   {"type":"ready"}, or an error and exit code 1; {"type":"configured"}; the SDK's messages as they are; after each turn
//            {"type":"turn_complete"} or {"type":"interrupted"}, with claude_session_id; {"type":"error", "code", "message"}
//   stderr   what the SDK and Claude Code print
//
// Prompts wait in a queue; each is one turn. Input is read during a turn too. At the end of stdin the waiting prompts still run;
// then the runner exits with 0. It runs on Node 18 and newer.
import { execFileSync } from 'node:child_process'
import { statSync, unlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const PACKAGE = '@anthropic-ai/claude-agent-sdk'
/** One of these lets Claude Code log in. */
const CREDENTIALS = ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN']
const CLOUDS = ['CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_VERTEX', 'CLAUDE_CODE_USE_FOUNDRY']
const MAX_LINE_BYTES = 8 * 1024 * 1024
const MAX_WAITING = 100
/** How long a run of Claude Code may take to end. */
const END_MS = 5000
const NEWLINE = 10

// Only this program's lines go to stdout, whatever a package prints.
const print = process.stdout.write.bind(process.stdout)
process.stdout.write = process.stderr.write.bind(process.stderr)
process.on('uncaughtException', (error) => exitWith('agent_failed', messageOf(error)))
process.on('unhandledRejection', (error) => exitWith('agent_failed', messageOf(error)))

const home = process.cwd()
const config = { maxTurns: 50, permissionMode: 'bypassPermissions', cwd: home }
const prompts = []
let sdk
/** The current conversation. */
let conversation
/** Another one, for the next turn. */
let nextConversation
/** The running query. It takes one prompt after the other; a change of the configuration needs a new one. */
let session
let isStale = false
let isTurn = false
let isInterrupted = false
let hasEnded = false
let wake = () => {}

async function main() {
  unlinkSync(fileURLToPath(import.meta.url))
  sdk = await load()
  if (![...CREDENTIALS, ...CLOUDS].some((name) => process.env[name])) {
    const [key, token] = CREDENTIALS
    exitWith('no_api_key', `There is no API key: the env of the sandbox has neither ${key} nor ${token}.`)
  }
  emit({ type: 'ready' })
  readLines()
  for await (const prompt of eachPrompt()) await runTurn(prompt)
  await session?.end()
  process.exit(0)
}

async function load() {
  const file = find()
  if (file === undefined) exitWith('package_not_found', `The sandbox has no npm package ${PACKAGE}.`)
  try {
    return await import(pathToFileURL(file).href)
  } catch (error) {
    exitWith('package_not_found', `The npm package ${PACKAGE} cannot be loaded: ${messageOf(error)}`)
  }
}

/** In the working directory or above it, in NODE_PATH, beside node, or where npm installs globally. */
function find() {
  const require = createRequire(join(process.cwd(), 'agent.cjs'))
  const npmRoot = () =>
    execFileSync('npm', ['root', '-g'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  const places = [
    () => undefined,
    () => ({ paths: [join(dirname(process.execPath), '../lib')] }),
    () => ({ paths: [dirname(npmRoot().trim())] }),
  ]
  for (const place of places) {
    try {
      return require.resolve(PACKAGE, place())
    } catch {}
  }
}

/** Without a line that is too long, whose bytes are not kept. */
function readLines() {
  let pieces = []
  let bytes = 0
  const keep = (piece) => {
    bytes += piece.length
    if (bytes <= MAX_LINE_BYTES) pieces.push(piece)
    else pieces = []
  }
  process.stdin.on('data', (chunk) => {
    let start = 0
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, start)) {
      keep(chunk.subarray(start, at))
      start = at + 1
      if (bytes > MAX_LINE_BYTES) complain(`A line has at most ${MAX_LINE_BYTES} bytes.`)
      else take(Buffer.concat(pieces).toString())
      pieces = []
      bytes = 0
    }
    keep(chunk.subarray(start))
  })
  process.stdin.on('end', () => {
    hasEnded = true
    wake()
  })
}

function take(line) {
  let message
  try {
    message = JSON.parse(line)
  } catch {}
  if (message?.type === 'prompt' && typeof message.text === 'string' && message.text !== '') {
    if (prompts.length === MAX_WAITING) return complain(`${MAX_WAITING} prompts wait; this one is dropped.`)
    prompts.push(message)
    wake()
  } else if (message?.type === 'configure') configure(message)
  else if (message?.type === 'interrupt') interrupt()
  else complain('This line is not a prompt with a text, a configure or an interrupt.')
}

/** From the next turn on. */
function configure({ type: _, resume, ...changes }) {
  if (changes.cwd !== undefined) {
    changes.cwd = resolve(home, String(changes.cwd))
    if (!statSync(changes.cwd, { throwIfNoEntry: false })?.isDirectory())
      return complain(`There is no directory ${changes.cwd}; the configuration stays as it was.`)
  }
  Object.assign(config, changes)
  nextConversation = resume ?? nextConversation
  isStale = true
  emit({ type: 'configured' })
}

function interrupt() {
  if (!isTurn && prompts.length === 0) return endTurn('interrupted')
  isInterrupted = true
  session?.interrupt()
}

async function* eachPrompt() {
  for (;;) {
    while (prompts.length > 0) yield prompts.shift()
    if (hasEnded) return
    await new Promise((resolve) => {
      wake = resolve
    })
  }
}

async function runTurn({ text, resume = nextConversation }) {
  isTurn = true
  if (resume !== undefined || isStale) await session?.end()
  conversation = resume ?? conversation
  nextConversation = undefined
  isStale = false
  try {
    await ask(text)
  } catch (error) {
    complain(messageOf(error))
  }
  endTurn(isInterrupted ? 'interrupted' : 'turn_complete')
  isTurn = isInterrupted = false
}

async function ask(text) {
  session ??= new Session(conversation)
  const asked = session
  await asked.ask(text)
  if (!asked.isUnknown) return
  session = new Session(undefined)
  await session.ask(text)
}

/** One run of Claude Code. */
class Session {
  /** The conversation to continue does not exist. */
  isUnknown = false
  #query
  #inbox = []
  #isOver = false
  #wake = () => {}
  #answered = undefined
  /** Claude Code has begun the turn; before that, an interrupt would be lost. */
  #isWorking = false
  #done

  constructor(resume) {
    this.#query = sdk.query({ prompt: this.#messages(), options: toOptions(resume) })
    this.#done = this.#read(resume)
  }

  /** Resolves at the end of the turn, or of the session. */
  ask(text) {
    this.#inbox.push({ type: 'user', message: { role: 'user', content: text }, parent_tool_use_id: null })
    this.#wake()
    const answer = new Promise((resolve) => {
      this.#answered = resolve
    })
    return Promise.race([answer, this.#done])
  }

  interrupt() {
    if (this.#isWorking) this.#query.interrupt().catch((error) => complain(messageOf(error)))
  }

  async end() {
    this.#isOver = true
    this.#wake()
    const timer = setTimeout(() => this.#query.close(), END_MS)
    await this.#done
    clearTimeout(timer)
  }

  async *#messages() {
    while (!this.#isOver) {
      while (this.#inbox.length > 0) yield this.#inbox.shift()
      await new Promise((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async #read(resume) {
    let hasBegun = false
    try {
      for await (const message of this.#query) {
        this.isUnknown = resume !== undefined && !hasBegun && message.type === 'result' && message.is_error
        if (this.isUnknown) break
        hasBegun = true
        conversation = message.session_id ?? conversation
        emit(message)
        if (message.type === 'system' && message.subtype === 'init') this.#begin()
        if (message.type === 'result') this.#finish()
      }
    } catch (error) {
      // Between two turns it repeats what the last result said; the next turn begins a new run.
      if (this.#answered) complain(messageOf(error))
    } finally {
      if (session === this) session = undefined
    }
  }

  #begin() {
    this.#isWorking = true
    if (isInterrupted) this.interrupt()
  }

  /** Claude Code begins some turns itself, for example when a program in the background has ended. */
  #finish() {
    this.#isWorking = false
    if (this.#answered) this.#answered()
    else endTurn('turn_complete')
    this.#answered = undefined
  }
}

function toOptions(resume) {
  const { systemPrompt, allowedTools, permissionMode, ...rest } = config
  return {
    ...rest,
    ...(resume !== undefined && { resume }),
    // Without a snapshot, so that a change of it takes effect in a conversation that exists.
    systemPrompt:
      systemPrompt === undefined
        ? { type: 'preset', preset: 'claude_code' }
        : { type: 'custom', prompt: systemPrompt, snapshot: false },
    ...(allowedTools && { allowedTools, tools: allowedTools.map(nameOf).filter(isBuiltIn) }),
    // Tools that are not allowed must not be used, so nothing bypasses the permissions then.
    permissionMode: allowedTools && permissionMode === 'bypassPermissions' ? 'dontAsk' : permissionMode,
    allowDangerouslySkipPermissions: true,
    // On stdin: other programs in the sandbox can see the arguments, and the configuration may hold secrets.
    mcpServersDelivery: 'initialize',
    env: { IS_SANDBOX: '1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', ...process.env },
    stderr: (text) => process.stderr.write(text),
  }
}

/** `Bash(git *)` is a rule for the tool Bash. */
const nameOf = (rule) => rule.split('(')[0]
const isBuiltIn = (name) => !name.startsWith('mcp__')

function endTurn(type) {
  emit({ type, ...(conversation !== undefined && { claude_session_id: conversation }) })
}

function complain(message) {
  emit({ type: 'error', code: 'agent_failed', message })
}

function exitWith(code, message) {
  emit({ type: 'error', code, message })
  process.exit(1)
}

function emit(message) {
  print(`${JSON.stringify(message)}\n`)
}

const messageOf = (error) => String(error?.message ?? error)

await main()
