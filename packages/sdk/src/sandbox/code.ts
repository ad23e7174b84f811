import { type CodeResult, IsletError, type LanguageName } from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import type { Names } from '../options.ts'
import { CAPTURE, type CaptureOptions, COMMAND, type CommandOptions } from '../process/exec.ts'

export interface RunCodeOptions extends CommandOptions, CaptureOptions {
  /** Default: detected from the code. */
  language?: LanguageName
}

/** The language is an argument of its own, or one of the options. */
export async function runCode(
  client: Client,
  sandboxId: string,
  code: string,
  language: LanguageName | RunCodeOptions | undefined,
  options: RunCodeOptions | undefined,
): Promise<CodeResult> {
  if (typeof language === 'object' && options !== undefined)
    throw new IsletError('bad_request', 'sandbox.runCode takes its options only once.', {
      hint: 'Put the language and the other options into one object.',
    })
  const given = typeof language === 'object' ? language : options
  const { signal, ...rest } = { ...given, ...(typeof language === 'string' && { language }) }
  return client.call('runCode', { params: { id: sandboxId }, body: { code, ...rest }, signal })
}

export const RUN_CODE: Names<RunCodeOptions> = { ...COMMAND, ...CAPTURE, language: 1 }
