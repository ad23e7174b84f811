// A sandbox as people name it: its id, the beginning of its id, or its name.
import { isId } from '@islet/contract/client'
import type { Islet, Sandbox } from '@islet/sdk'
import { CliError, UsageError } from '../errors.ts'

export async function findSandbox(islet: Islet, text: string): Promise<Sandbox> {
  return islet.sandboxes.connect(isId('sandbox', text) ? text : await findSandboxId(islet, text))
}

export async function findSandboxId(islet: Islet, text: string): Promise<string> {
  if (isId('sandbox', text)) return text
  const named: string[] = []
  const begun: string[] = []
  for await (const { id, name } of islet.sandboxes.all()) {
    if (name === text) named.push(id)
    if (text !== '' && (id.startsWith(text) || id.startsWith(`sbx-${text}`))) begun.push(id)
  }
  const found = named.length > 0 ? named : begun
  if (found.length === 1) return found[0]!
  if (found.length === 0) {
    throw new CliError('sandbox_not_found', `There is no sandbox ${text}.`, {
      hint: 'islet ls shows the ones there are.',
    })
  }
  throw new UsageError(
    `${text} means ${found.length} sandboxes.`,
    `Be exact: ${found.slice(0, 5).join(', ')}`,
  )
}
