// Several sandboxes, each as people name it, and the same thing done to all of them.
import type { Sandbox, SandboxInfo } from '@islet/sdk'
import { connect } from '../connect.ts'
import { print, printJson } from '../output.ts'
import { findSandbox } from './sandbox.ts'

export interface EachOptions {
  json?: true
  /** How those are shown for which it was done. Default: their ids. */
  show?(done: SandboxInfo[]): void
}

/** One that fails keeps none of the others from being done; the first failure is told when all are over. */
export async function doToEach(
  texts: readonly string[],
  work: (sandbox: Sandbox) => Promise<SandboxInfo>,
  { json, show = showIds }: EachOptions = {},
): Promise<void> {
  const islet = connect()
  const sandboxes = await Promise.all(texts.map((text) => findSandbox(islet, text)))
  const named = new Map(sandboxes.map((sandbox) => [sandbox.id, sandbox]))
  const outcomes = await Promise.allSettled([...named.values()].map(work))
  const done = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  if (json) printJson(done)
  else if (done.length > 0) show(done)
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed) throw failed.reason
}

function showIds(done: SandboxInfo[]): void {
  for (const { id } of done) print(id)
}
