import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { byteLength, env, sandboxPath, userName } from './common.ts'
import { captureFields, execResult, keepOutput, timeout } from './process.ts'

export const LANGUAGES = ['python', 'node', 'typescript', 'deno', 'bun', 'shell'] as const
export const language = z.enum(LANGUAGES)
export type Language = z.infer<typeof language>

/** Other names that a request may use. The answer has the name of the language. */
export const LANGUAGE_ALIASES = {
  py: 'python',
  python3: 'python',
  javascript: 'node',
  js: 'node',
  ts: 'typescript',
  bash: 'shell',
  sh: 'shell',
} as const satisfies Record<string, Language>
type Alias = keyof typeof LANGUAGE_ALIASES
export type LanguageName = Language | Alias

const aliases = Object.keys(LANGUAGE_ALIASES) as Alias[]
const languageName = z
  .enum([...LANGUAGES, ...aliases])
  .transform(
    (name): Language => (name in LANGUAGE_ALIASES ? LANGUAGE_ALIASES[name as Alias] : (name as Language)),
  )

export const runCode = z.strictObject({
  code: z
    .string()
    .refine((text) => byteLength(text) <= LIMITS.codeBytes, `code has at most ${LIMITS.codeBytes} bytes`),
  language: languageName.optional().meta({
    description:
      'Aliases: py and python3 for python, javascript and js for node, ts for typescript, bash and sh for shell. Default: detected from the code.',
  }),
  cwd: sandboxPath.optional(),
  env: env.optional(),
  user: userName.optional(),
  timeout: timeout.optional(),
  encoding: captureFields.encoding,
  maxOutputBytes: captureFields.maxOutputBytes,
  keepOutput: keepOutput.optional(),
})
export type RunCode = z.input<typeof runCode>
export type RunCodeParsed = z.output<typeof runCode>

export const codeResult = execResult.extend({
  language,
  output: z.string().meta({ description: 'stdout and stderr together, in the order they were printed.' }),
})
export type CodeResult = z.infer<typeof codeResult>
