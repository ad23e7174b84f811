// A sandbox as people name it: its id, the beginning of its id, or its name.
import { isId } from '@islet/contract/client'
import { hasCode, type Islet, type Sandbox } from '@islet/sdk'
import { CliError, UsageError } from '../errors.ts'

export async function findSandbox(islet: Islet, text: string): Promise<Sandbox> {
  try {
    return await islet.sandboxes.connect(text)
  } catch (error) {
    if (isId('sandbox', text) || !hasCode(error, 'sandbox_not_found')) throw error
    return islet.sandboxes.connect(await begunBy(islet, text))
  }
}

export async function findSandboxId(islet: Islet, text: string): Promise<string> {
  return isId('sandbox', text) ? text : (await findSandbox(islet, text)).id
}

/** The id that begins so. */
async function begunBy(islet: Islet, text: string): Promise<string> {
  const found: string[] = []
  for await (const { id } of islet.sandboxes.all())
    if (id.startsWith(text) || id.startsWith(`sbx-${text}`)) found.push(id)
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
