// Many writes and deletes in one call. Each has its own result; two batches that share a file run one after the other.
import { type BatchOperationParsed, type BatchResult, IsletError } from '@islet/contract'
import { oneChunk } from '../../wire/chunks.ts'
import type { Files } from './files.ts'

/** Applied in the order of the paths; of several operations on a path the last one counts. */
export async function applyBatch(
  files: Files,
  sandboxId: string,
  operations: readonly BatchOperationParsed[],
  options: { signal?: AbortSignal } = {},
): Promise<BatchResult[]> {
  const last = new Map(
    operations.map((operation) => [files.resolve(sandboxId, operation.path), operation] as const),
  )
  const paths = [...last.keys()].sort()
  return files.exclusively(sandboxId, paths, async () => {
    const results: BatchResult[] = []
    for (const path of paths) {
      options.signal?.throwIfAborted()
      results.push(await apply(files, sandboxId, last.get(path)!, options))
    }
    return results
  })
}

async function apply(
  files: Files,
  sandboxId: string,
  operation: BatchOperationParsed,
  { signal }: { signal?: AbortSignal },
): Promise<BatchResult> {
  const { path, content = '', encoding = 'utf8', mode } = operation
  try {
    if (operation.operation === 'delete') {
      await files.remove(sandboxId, path, { recursive: true, signal })
      return { path, success: true }
    }
    const file = await files.write(sandboxId, path, oneChunk(Buffer.from(content, encoding)), {
      mode,
      signal,
    })
    return { path, success: true, file }
  } catch (error) {
    if (!(error instanceof IsletError)) throw error
    return { path, success: false, error: error.message, code: error.code }
  }
}
