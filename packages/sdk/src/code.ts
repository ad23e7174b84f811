import type { CodeResult, LanguageName } from '@islet/contract'
import type { Client } from './client.ts'
import type { CommandOptions } from './exec.ts'

export interface RunCodeOptions extends CommandOptions {
  /** Default: found out from the code. */
  language?: LanguageName
  /** How stdout, stderr and output are given. Default: utf8. */
  encoding?: 'utf8' | 'base64'
  /** Of stdout and stderr together; more is cut and `truncated` is true. Default: 4 MiB. */
  maxOutputBytes?: number
}

/** The language may be given by itself, or as one of the options. */
export function runCode(
  client: Client,
  sandboxId: string,
  code: string,
  language: LanguageName | RunCodeOptions | undefined,
  options: RunCodeOptions = {},
): Promise<CodeResult> {
  const chosen = typeof language === 'object' ? language : { ...options, ...(language && { language }) }
  const { signal, ...rest } = chosen
  return client.call('runCode', { params: { id: sandboxId }, body: { code, ...rest }, signal })
}
