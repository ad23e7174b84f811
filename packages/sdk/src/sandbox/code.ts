import { type CodeResult, IsletError, type LanguageName } from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import type { Names } from '../options.ts'
import type { CommandOptions } from '../process/exec.ts'

export interface RunCodeOptions extends CommandOptions {
  /** Default: found out from the code. */
  language?: LanguageName
  /** How stdout, stderr and output are given. Default: utf8. */
  encoding?: 'utf8' | 'base64'
  /** Of stdout and stderr together; more is cut and `truncated` is true. Default: 4 MiB. */
  maxOutputBytes?: number
}

/** The language may be given by itself, or as one of the options. */
export async function runCode(
  client: Client,
  sandboxId: string,
  code: string,
  language: LanguageName | RunCodeOptions | undefined,
  options: RunCodeOptions | undefined,
): Promise<CodeResult> {
  if (typeof language === 'object' && options !== undefined)
    throw new IsletError('bad_request', 'sandbox.runCode takes its options once.', {
      hint: 'Put the language and all others into one object.',
    })
  const given = typeof language === 'object' ? language : options
  const { signal, ...rest } = { ...given, ...(typeof language === 'string' && { language }) }
  return client.call('runCode', { params: { id: sandboxId }, body: { code, ...rest }, signal })
}

export const RUN_CODE: Names<RunCodeOptions> = {
  cwd: 1,
  env: 1,
  user: 1,
  timeout: 1,
  keepOutput: 1,
  signal: 1,
  language: 1,
  encoding: 1,
  maxOutputBytes: 1,
}
