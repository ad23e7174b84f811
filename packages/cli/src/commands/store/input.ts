// JSON from the command line or from stdin.
import { UsageError } from '../../errors.ts'
import { readStdin } from '../../stdio/pipe.ts'

/** What was typed; nothing or `-` is stdin. */
export async function readInput(typed: string | undefined, example: string): Promise<string> {
  if (typed !== undefined && typed !== '-') return typed
  if (typed === undefined && process.stdin.isTTY) throw new UsageError('There is no value.', example)
  return Buffer.from(await readStdin()).toString('utf8')
}

export function parseJson(text: string, hint: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new UsageError(`That is not JSON: ${(error as Error).message}.`, hint)
  }
}
