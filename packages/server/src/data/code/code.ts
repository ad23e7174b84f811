// Pieces of code, run by the interpreter of their language. The code travels as a file, never as shell text.
import { posix } from 'node:path'
import { type CodeResult, IsletError, newId, type RunCodeParsed } from '@islet/contract'
import type { RunningSandbox } from '../../control/fleet.ts'
import type { Sandboxes } from '../../control/sandboxes.ts'
import type { Entry, Guest } from '../../guest/guest.ts'
import type { Processes } from '../processes.ts'
import { detectLanguage } from './detect.ts'
import { COMMONJS_GLOBALS, interpreterOf, needsCommonJsGlobals } from './interpreters.ts'

const GUEST_WAIT_MS = 10_000
const FALLBACK_DIRECTORY = '/tmp'

export interface CodeRunnerOptions {
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

  /** To its end. When `signal` aborts (the client went away) the code is killed. Its file is gone afterwards. */
  async run(
    sandboxId: string,
    input: RunCodeParsed,
    options: RunOptions = {},
  ): Promise<Omit<CodeResult, 'autoResumed'>> {
    const { code } = input
    if (code.trim() === '') throw new IsletError('bad_request', 'The code is empty.')
    const language = input.language ?? detectLanguage(code)
    const { programs, args, extension } = interpreterOf(language, code)
    const sandbox = await this.#options.sandboxes.running(sandboxId)
    const { guest } = sandbox.machine
    if (!guest.connected) await guest.ready({ timeoutMs: GUEST_WAIT_MS })

    const processId = newId('process')
    const files: Record<string, string> = { [`.islet-${processId}${extension}`]: code }
    const preloads = needsCommonJsGlobals(extension, code) ? [`.islet-${processId}-require.cjs`] : []
    for (const name of preloads) files[name] = COMMONJS_GLOBALS

    const placed = await placeFiles(sandbox, input, files, options)
    try {
      const [main, ...others] = placed.paths as [string, ...string[]]
      const argv = [...others.flatMap((path) => ['--require', path]), ...args, main]
      const env = { ...input.env, ...(placed.isElsewhere && searchPaths(sandbox, input)) }
      const { cwd, user, timeout, maxOutputBytes } = input
      for (const program of programs) {
        try {
          const exec = { command: [program, ...argv], cwd, user, timeout, maxOutputBytes, env }
          const { result, output } = await this.#options.processes.capture(sandboxId, exec, {
            processId,
            ...options,
          })
          return { processId, language, ...result, ...output.texts('utf8'), output: output.together() }
        } catch (error) {
          if (!(error instanceof IsletError) || error.code !== 'command_not_found') throw error
        }
      }
    } finally {
      await removeFiles(guest, placed.paths)
    }
    throw new IsletError('interpreter_not_found', `The sandbox has no ${programs.join(' or ')}.`)
  }
}

/** In the working directory, so that the code finds what is beside it; where the user may not write there, in /tmp. */
async function placeFiles(
  sandbox: RunningSandbox,
  input: RunCodeParsed,
  files: Record<string, string>,
  options: RunOptions,
): Promise<{ paths: string[]; isElsewhere: boolean }> {
  const { guest } = sandbox.machine
  const owner = input.user ?? sandbox.record.user
  const write = async (directory: string) => {
    const paths: string[] = []
    let entry: Entry | undefined
    try {
      for (const [name, content] of Object.entries(files)) {
        const path = posix.join(directory, name)
        const how = { mode: 0o600, owner, exclusive: true, ...options }
        entry = await guest.write(path, bytesOf(content), how)
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
  if (there && directory && mayWrite(directory, there.entry)) return { ...there, isElsewhere: false }
  if (there) await removeFiles(guest, there.paths)
  return { ...(await write(FALLBACK_DIRECTORY)), isElsewhere: true }
}

const workingDirectory = ({ record }: RunningSandbox, input: RunCodeParsed): string =>
  posix.resolve(record.workdir, input.cwd ?? '')

function keepAbort(error: unknown, { signal }: RunOptions): undefined {
  if (signal?.aborted) throw error
}

/** By the owner, the group and the rest, as the file that was written there shows who the user is. */
function mayWrite(directory: Entry, { uid, gid }: Entry): boolean {
  if (uid === 0) return true
  const shift = directory.uid === uid ? 6 : directory.gid === gid ? 3 : 0
  return ((directory.mode >> shift) & 0o3) === 0o3
}

/** Of code that could not be put into its working directory, what is there is found by these. */
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

/** Best effort: a sandbox that is gone took them with it. */
async function removeFiles(guest: Guest, paths: readonly string[]): Promise<void> {
  await Promise.all(paths.map((path) => guest.remove(path).catch(() => {})))
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}
