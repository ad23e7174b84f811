// Code is an argument of its interpreter and never a part of a shell command.
import { IsletError } from '@islet/sdk'
import type { SandboxLanguage } from '../types.ts'

/** The kernel's limit for one argument, with its final NUL. */
const ARGUMENT_BYTES = 128 * 1024

export function argvOf(code: string, language: SandboxLanguage): string[] {
  // Code that begins with a dash is not an option. Node takes no empty program.
  if (language === 'node') return fitting(['node', `--eval=${code || ';'}`])
  return fitting(language === 'python' ? ['python3', '-c', code] : ['/bin/sh', '-c', '--', code])
}

/** For services that take only a line of shell: the words, so quoted that the shell reads them as they are. */
export function quoted(argv: readonly string[]): string {
  return argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
}

function fitting(argv: string[]): string[] {
  if (Buffer.byteLength(argv.at(-1)!) < ARGUMENT_BYTES) return argv
  throw new IsletError('body_too_large', `The code has more than ${ARGUMENT_BYTES / 1024} KiB.`, {
    hint: 'Write it to a file with writeFile, then run that file.',
  })
}
