// Words for running things in a sandbox that tests say often.
import assert from 'node:assert/strict'
import { type AnyErrorCode, type ExecResult, hasCode, type RunOptions, type Sandbox } from 'islet'

/** Returns its output without the last newline. The command must succeed. */
export async function say(
  sandbox: Sandbox,
  command: string | string[],
  options: RunOptions = {},
): Promise<string> {
  const result = await sandbox.exec.run(command, options)
  assert.equal(result.exitCode, 0, describe(command, result))
  return result.stdout.replace(/\n$/, '')
}

/** Runs it and wants a failure. */
export async function refused(
  sandbox: Sandbox,
  command: string,
  options: RunOptions = {},
): Promise<ExecResult> {
  const result = await sandbox.exec.run(command, options)
  assert.notEqual(result.exitCode, 0, describe(command, result))
  return result
}

export async function failsWith(work: Promise<unknown>, ...codes: AnyErrorCode[]): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(hasCode(error, ...codes), `${codes.join(' or ')} was expected, not ${error}`)
    return true
  })
}

function describe(command: string | string[], result: ExecResult): string {
  return `${command}\n${JSON.stringify(result).slice(0, 2000)}`
}
