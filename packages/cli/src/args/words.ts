import { UsageError } from '../errors.ts'

/** One word is shell text; several are a program and its arguments. */
export function toCommand(words: readonly string[], example: string): string | string[] {
  const [first, ...rest] = words
  if (first === undefined) throw new UsageError('There is no command to run.', example)
  return rest.length === 0 ? first : [...words]
}
