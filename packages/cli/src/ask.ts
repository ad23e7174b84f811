import { createInterface } from 'node:readline/promises'
import { UsageError } from './errors.ts'
import { say } from './output.ts'

/** Before something is removed for good: a yes from the terminal. In a pipe there is nobody to ask; `unasked` does without. */
export async function agreesTo(question: string, unasked: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UsageError('This needs a yes, and stdin is not a terminal.', unasked)
  using prompt = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await prompt.question(`${question} [y/N] `).catch((interrupted) => {
    say('')
    throw interrupted
  })
  const isYes = /^y(es)?$/i.test(answer.trim())
  if (!isYes) say('Nothing was removed.')
  return isYes
}
