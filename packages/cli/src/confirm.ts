import { createInterface } from 'node:readline/promises'
import { UsageError } from './errors.ts'
import { say } from './output.ts'

/** Asks on the terminal before something is removed for good. In a pipe it fails with `hint`, which names the flag that skips the question. */
export async function confirm(question: string, hint: string, accepted = /^y(es)?$/i): Promise<boolean> {
  if (!process.stdin.isTTY)
    throw new UsageError('This needs confirmation, and stdin is not a terminal.', hint)
  using prompt = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await prompt.question(`${question} `).catch((interrupted) => {
    say('')
    throw interrupted
  })
  return accepted.test(answer.trim())
}
