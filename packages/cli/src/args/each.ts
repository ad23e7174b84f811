// The same work for several things that are named on the command line.
import type { Sandbox, SandboxInfo } from '@islet/sdk'
import type { JsonFlag } from '../command.ts'
import { connect } from '../connect.ts'
import { print, printJson } from '../output.ts'
import { findSandbox } from './find.ts'

export interface EachOptions extends JsonFlag {
  /** Shows the sandboxes that succeeded. Default: prints their ids. */
  show?(done: SandboxInfo[]): void
}

/** Works on all sandboxes even if one fails; then throws the first failure. */
export async function forEachSandbox(
  texts: readonly string[],
  work: (sandbox: Sandbox) => Promise<SandboxInfo>,
  { json, show = showIds }: EachOptions,
): Promise<void> {
  const islet = connect()
  const sandboxes = await Promise.all(texts.map((text) => findSandbox(islet, text)))
  const unique = new Map(sandboxes.map((sandbox) => [sandbox.id, sandbox]))
  const outcomes = await Promise.allSettled([...unique.values()].map(work))
  const done = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  if (json) printJson(done)
  else if (done.length > 0) show(done)
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed) throw failed.reason
}

/** Removes one after the other, stops at the first failure, and prints what is gone. */
export async function removeEach(
  texts: readonly string[],
  { json }: JsonFlag,
  remove: (id: string) => Promise<unknown>,
  /** Answers with the id of what `text` names. Default: `text` is the id. */
  find: (text: string) => Promise<string> = async (text) => text,
): Promise<void> {
  const removed: string[] = []
  for (const text of texts) {
    const id = await find(text)
    await remove(id)
    removed.push(id)
    if (!json) print(id)
  }
  if (json) printJson({ removed })
}

function showIds(done: SandboxInfo[]): void {
  for (const { id } of done) print(id)
}
