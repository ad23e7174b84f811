// The methods of a sandbox as tools for a language model, for any framework that takes a name, a JSON Schema and a function.
import { type Names, refuseUnknown } from '@islet/sdk'
import { bad } from './checks.ts'
import type { AnySandbox } from './types.ts'

export interface SandboxTool {
  name: string
  description: string
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>
  /** A text for the model, also for a failure that the model can do something about. */
  execute(args: Record<string, unknown>): Promise<string>
}

export interface SandboxToolsOptions {
  /** Begins every name. Default: sandbox_. */
  prefix?: string
  /** Of one answer; of a longer one the beginning and the end are given. Default: 30,000. */
  maxChars?: number
}

const OPTIONS: Names<SandboxToolsOptions> = { prefix: 1, maxChars: 1 }
const TEXT = { type: 'string' }
const SECONDS = { type: 'number', description: 'Seconds until the run is killed. Default: 30.' }
const PATH = { type: 'string', description: 'Relative to the workspace.' }

export function createSandboxTools(sandbox: AnySandbox, options: SandboxToolsOptions = {}): SandboxTool[] {
  refuseUnknown('createSandboxTools', options, OPTIONS)
  const { prefix = 'sandbox_', maxChars = 30_000 } = options
  if (!Number.isSafeInteger(maxChars) || maxChars < 100) throw bad('maxChars must be at least 100.')
  const tool = (
    name: string,
    description: string,
    properties: Record<string, object>,
    required: string[],
    work: (args: Record<string, unknown>) => Promise<string>,
  ): SandboxTool => ({
    name: prefix + name,
    description,
    parameters: { type: 'object', properties, required, additionalProperties: false },
    execute: async (args) => {
      try {
        checkArgs(args, properties, required)
        return await work(args)
      } catch (error) {
        return `Error: ${error instanceof Error ? error.message : error}`
      }
    },
  })
  const run = async (code: string, more: object) => {
    const { output, exitCode, timedOut } = await sandbox.run(code, more)
    return JSON.stringify({ exitCode, timedOut: timedOut ?? false, output: shortened(output, maxChars) })
  }
  return [
    tool(
      'run',
      'Runs a program in the workspace and returns its exit code and output.',
      {
        code: TEXT,
        language: { type: 'string', enum: ['node', 'python', 'shell'] },
        timeoutSeconds: SECONDS,
      },
      ['code', 'language'],
      ({ code, ...more }) => run(code as string, more),
    ),
    tool(
      'shell',
      'Runs a shell command in the workspace and returns its exit code and output.',
      { command: TEXT, timeoutSeconds: SECONDS },
      ['command'],
      ({ command, ...more }) => run(command as string, { ...more, language: 'shell' }),
    ),
    tool('read_file', 'Reads a text file of the workspace.', { path: PATH }, ['path'], async ({ path }) =>
      shortened((await sandbox.readFile(path as string)) ?? '[file not found]', maxChars),
    ),
    tool(
      'write_file',
      'Writes a text file of the workspace; makes missing directories.',
      { path: PATH, contents: TEXT },
      ['path', 'contents'],
      async ({ path, contents }) => {
        await sandbox.writeFile(path as string, contents as string)
        return 'ok'
      },
    ),
    tool(
      'list_files',
      'Lists a directory of the workspace; the names of directories end in a slash.',
      { path: PATH },
      [],
      async ({ path = '.' }) => {
        const { exitCode, output } = await sandbox.run('ls -1Ap', { language: 'shell', cwd: path as string })
        return shortened(exitCode === 0 ? output : `Error: ${output}`, maxChars)
      },
    ),
  ]
}

/** Models make mistakes: the message says which. */
function checkArgs(args: unknown, properties: Record<string, object>, required: string[]): void {
  refuseUnknown('This tool', args, Object.fromEntries(Object.keys(properties).map((name) => [name, 1])))
  const given = (args ?? {}) as Record<string, unknown>
  for (const name of required) if (given[name] === undefined) throw bad(`The argument ${name} is missing.`)
  for (const [name, value] of Object.entries(given)) {
    const { type } = properties[name] as { type: string }
    if (value !== undefined && typeof value !== type) throw bad(`The argument ${name} must be a ${type}.`)
  }
}

function shortened(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  const half = Math.floor(maxChars / 2) - 20
  return `${text.slice(0, half)}\n[… ${text.length - 2 * half} characters left out …]\n${text.slice(-half)}`
}
