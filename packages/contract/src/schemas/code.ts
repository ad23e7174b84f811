import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import { byteLength, env, sandboxPath, userName } from './common.ts'
import { captureFields, execResult, timeout } from './process.ts'

export const LANGUAGES = ['python', 'node', 'deno', 'bun', 'shell'] as const
export const language = z.enum(LANGUAGES)
export type Language = z.infer<typeof language>

export const runCode = z.strictObject({
  code: z
    .string()
    .refine((text) => byteLength(text) <= LIMITS.codeBytes, `code has at most ${LIMITS.codeBytes} bytes`),
  language: language.optional().meta({ description: 'Default: found out from the code.' }),
  cwd: sandboxPath.optional(),
  env: env.optional(),
  user: userName.optional(),
  timeout: timeout.optional(),
  maxOutputBytes: captureFields.maxOutputBytes,
})
export type RunCode = z.input<typeof runCode>
export type RunCodeParsed = z.output<typeof runCode>

export const codeResult = execResult.extend({
  language,
  output: z.string().meta({ description: 'stdout and stderr together, in the order they were printed.' }),
})
export type CodeResult = z.infer<typeof codeResult>
