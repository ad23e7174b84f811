// Runs pieces of code with the interpreter of their language. The code is passed as a file, never as shell text.
import { posix } from 'node:path'
import { type CodeResult, IsletError, newId, type RunCodeParsed } from '@islet/contract'
import type { RunningSandbox } from '../../control/fleet.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Entry, Guest } from '../../guest/guest.ts'
import { hasCode } from '../../lib/has-code.ts'
import { oneChunk } from '../../wire/chunks.ts'
import { release, type Told } from '../output/kept-bytes.ts'
import type { Processes } from '../processes/processes.ts'
import { detectLanguage } from './detect.ts'
import { type Interpreter, interpretersOf } from './interpreters.ts'

const GUEST_WAIT_MS = 10_000
const FALLBACK_DIRECTORY = '/tmp'

interface CodeRunnerOptions {
  sandboxes: Sandboxes
  processes: Processes
}

interface RunOptions {
  signal?: AbortSignal
}

export class CodeRunner {
  readonly #options: CodeRunnerOptions

  constructor(options: CodeRunnerOptions) {
    this.#options = options
  }

  /** Runs to the end. When `signal` aborts (the client went away) the code is killed. Its file is removed afterwards. */
  async run(
    sandboxId: string,
    input: RunCodeParsed,
    options: RunOptions = {},
  ): Promise<Told<Omit<CodeResult, 'autoResumed'>>> {
    const { code } = input
    if (code.trim() === '') throw new IsletError('bad_request', 'The code is empty.')
    const language = input.language ?? detectLanguage(code)
    const interpreters = interpretersOf(language, code)
    const sandbox = await this.#options.sandboxes.running(sandboxId)
    const { guest } = sandbox.machine
    await guest.ready({ timeoutMs: GUEST_WAIT_MS })
    const unable = new Set<string>()
    let placed: Placed | undefined
    try {
      for (const interpreter of interpreters) {
        if (placed?.for !== layoutOf(interpreter)) {
          await removeFiles(guest, placed?.paths ?? [])
          placed = undefined
          placed = await placeFiles(sandbox, input, interpreter, options)
        }
        const result = await this.#attempt(sandbox, input, interpreter, placed, options)
        if (result === 'unable') unable.add(interpreter.program)
        else if (result !== 'missing') return { language, ...result }
      }
    } finally {
      await removeFiles(guest, placed?.paths ?? [])
    }
    throw notFound(interpreters, unable)
  }

  async #attempt(
    sandbox: RunningSandbox,
    input: RunCodeParsed,
    { program, args, isUnable }: Interpreter,
    placed: Placed,
    options: RunOptions,
  ): Promise<Told<Omit<CodeResult, 'autoResumed' | 'language'>> | 'missing' | 'unable'> {
    const [main, ...preloads] = placed.paths as [string, ...string[]]
    const argv = [...preloads.flatMap((path) => ['--require', path]), ...args, main]
    const env = { ...input.env, ...(placed.isElsewhere && searchPaths(sandbox, input)) }
    const { cwd, user, timeout, maxOutputBytes, keepOutput } = input
    const exec = { command: [program, ...argv], cwd, user, timeout, maxOutputBytes, keepOutput, env }
    const processId = newId('process')
    try {
      const how = { processId, together: true, ...options }
      const { result, output } = await this.#options.processes.commands.capture(sandbox.record.id, exec, how)
      const { stderr } = output.texts('utf8')
      if (typeof stderr === 'string' && isUnable?.({ ...result, stderr })) {
        release(output)
        return 'unable'
      }
      const { encoding = 'utf8' } = input
      return { processId, ...result, ...output.texts(encoding), output: output.together(encoding) }
    } catch (error) {
      if (hasCode(error, 'command_not_found')) return 'missing'
      throw error
    }
  }
}

function notFound(interpreters: readonly Interpreter[], unable: ReadonlySet<string>): IsletError {
  const programs = interpreters.map(({ program }) => program)
  const missing = programs
    .filter((program) => !unable.has(program))
    .join(', ')
    .replace(/, (?=[^,]*$)/, ' or ')
  if (!programs.includes('tsx'))
    return new IsletError('interpreter_not_found', `The sandbox has no ${missing}.`)
  const old = unable.size > 0 ? `${[...unable].join(' and ')} cannot, and ` : ''
  const message = `Nothing in the sandbox runs TypeScript: ${old}there is no ${missing}.`
  return new IsletError('interpreter_not_found', message, {
    hint: 'Node 22.18 or newer, tsx, ts-node, bun or deno would do: choose a runtime that has one, or npm install -g tsx.',
  })
}

interface Placed {
  /** The code first, then the preloads. */
  paths: string[]
  isElsewhere: boolean
  for: string
}

/** Interpreters with the same layout use the same files. */
const layoutOf = ({ extension, preloads = [] }: Interpreter): string => [extension, ...preloads].join('\n')

/** In the working directory, so that the code finds the files beside it; in /tmp if the user may not write there. */
async function placeFiles(
  sandbox: RunningSandbox,
  input: RunCodeParsed,
  interpreter: Interpreter,
  options: RunOptions,
): Promise<Placed> {
  const { guest } = sandbox.machine
  const name = `.islet-${newId('process')}`
  const files = [[name + interpreter.extension, input.code] as const]
  for (const [index, source] of (interpreter.preloads ?? []).entries())
    files.push([`${name}-${index}.cjs`, source])
  const owner = input.user ?? sandbox.record.user
  const write = async (directory: string) => {
    const paths: string[] = []
    let entry: Entry | undefined
    try {
      for (const [name, content] of files) {
        const path = posix.join(directory, name)
        const how = { mode: 0o600, owner, exclusive: true, ...options }
        entry = await guest.write(path, oneChunk(Buffer.from(content)), how)
        paths.push(path)
      }
      return { paths, entry: entry! }
    } catch (error) {
      await removeFiles(guest, paths)
      throw error
    }
  }
  const cwd = workingDirectory(sandbox, input)
  const [there, directory] = await Promise.all([
    write(cwd).catch((error) => keepAbort(error, options)),
    guest.stat(cwd, { follow: true }).catch(() => undefined),
  ])
  if (there && directory && mayWrite(directory, there.entry))
    return { paths: there.paths, isElsewhere: false, for: layoutOf(interpreter) }
  if (there) await removeFiles(guest, there.paths)
  const { paths } = await write(FALLBACK_DIRECTORY)
  return { paths, isElsewhere: true, for: layoutOf(interpreter) }
}

const workingDirectory = ({ record }: RunningSandbox, input: RunCodeParsed): string =>
  posix.resolve(record.workdir, input.cwd ?? '')

function keepAbort(error: unknown, { signal }: RunOptions): undefined {
  if (signal?.aborted) throw error
}

/** By the permission bits of the directory; the file that was written there shows the user and group. */
function mayWrite(directory: Entry, { uid, gid }: Entry): boolean {
  if (uid === 0) return true
  const shift = directory.uid === uid ? 6 : directory.gid === gid ? 3 : 0
  return ((directory.mode >> shift) & 0o3) === 0o3
}

/** For code in /tmp: variables by which it finds modules in its working directory. */
function searchPaths(sandbox: RunningSandbox, input: RunCodeParsed): Record<string, string> {
  const cwd = workingDirectory(sandbox, input)
  const env: Record<string, string | undefined> = {
    ...sandbox.machine.env,
    ...sandbox.record.env,
    ...input.env,
  }
  const before = (path: string, others: string | undefined) => (others ? `${path}:${others}` : path)
  return {
    PYTHONPATH: before(cwd, env.PYTHONPATH),
    NODE_PATH: before(posix.join(cwd, 'node_modules'), env.NODE_PATH),
  }
}

/** Best effort: a sandbox that is gone has no files. */
async function removeFiles(guest: Guest, paths: readonly string[]): Promise<void> {
  await Promise.all(paths.map((path) => guest.remove(path).catch(() => {})))
}
