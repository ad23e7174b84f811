// A checkpoint as people name it: its id, the beginning of its id, or its name.
import { isId } from '@islet/contract/client'
import type { CheckpointInfo, Islet } from '@islet/sdk'
import { CliError, UsageError } from '../errors.ts'

export async function findCheckpoint(
  islet: Islet,
  sandboxId: string,
  text: string,
): Promise<Pick<CheckpointInfo, 'id' | 'name'>> {
  const all = await islet.checkpoints.list(sandboxId)
  const exact = all.find(({ id, name }) => name === text || id === text)
  if (exact) return exact
  const begun = all.filter(({ id }) => text !== '' && (id.startsWith(text) || id.startsWith(`ckp-${text}`)))
  if (begun.length === 1) return begun[0]!
  if (begun.length > 1) {
    throw new UsageError(
      `${text} means ${begun.length} checkpoints.`,
      `Be exact: ${begun
        .slice(0, 5)
        .map(({ id }) => id)
        .join(', ')}`,
    )
  }
  const whose = isId('checkpoint', text) ? `${sandboxId} has no checkpoint` : 'There is no checkpoint'
  throw new CliError('checkpoint_not_found', `${whose} ${text}.`, {
    hint: `islet checkpoint ls ${sandboxId} shows the ones there are.`,
  })
}
