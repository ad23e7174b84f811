// A snapshot as people name it: its id, the beginning of its id, its tag, or its name.
import { isId } from '@islet/contract/client'
import { hasCode, type Islet, type SnapshotInfo } from '@islet/sdk'
import { UsageError } from '../errors.ts'

export async function findSnapshot(islet: Islet, text: string): Promise<SnapshotInfo> {
  try {
    return await islet.snapshots.get(text)
  } catch (error) {
    if (!hasCode(error, 'snapshot_not_found') || isId('snapshot', text) || text === '') throw error
    const found: SnapshotInfo[] = []
    for await (const snapshot of allSnapshots(islet)) {
      const { id, name } = snapshot
      if (name === text || id.startsWith(text) || id.startsWith(`snp-${text}`)) found.push(snapshot)
    }
    if (found.length === 0) throw error
    if (found.length === 1) return found[0]!
    const ids = found.slice(0, 5).map(({ id }) => id)
    throw new UsageError(`${text} means ${found.length} snapshots.`, `Be exact: ${ids.join(', ')}`)
  }
}

/** Newest first. */
export async function* allSnapshots(islet: Islet): AsyncGenerator<SnapshotInfo> {
  for (let cursor: string | undefined; ; ) {
    const page = await islet.snapshots.list({ limit: 1000, cursor })
    yield* page.snapshots
    cursor = page.cursor
    if (cursor === undefined) return
  }
}
