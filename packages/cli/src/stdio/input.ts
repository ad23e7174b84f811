// Reads the input of a command: stdin and local files.
import { readFileSync } from 'node:fs'
import { CliError, type UsageError } from '../errors.ts'

export const hasPipedStdin = (): boolean => !process.stdin.isTTY

export async function readStdin(): Promise<Uint8Array> {
  const parts: Buffer[] = []
  for await (const data of process.stdin) parts.push(data as Buffer)
  return Buffer.concat(parts)
}

/** Stdin as text if `path` is `-` or missing, else the file. Throws `missing` rather than wait for a terminal. */
export async function readText(path: string | undefined, missing: UsageError): Promise<string> {
  if (path !== undefined && path !== '-') return readTextFile(path)
  if (path === undefined && !hasPipedStdin()) throw missing
  return Buffer.from(await readStdin()).toString()
}

export function readTextFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const message = `${path} cannot be read: ${(cause as Error).message}.`
    throw new CliError('file_not_readable', message, { hint: `ls -l ${path}`, cause })
  }
}
