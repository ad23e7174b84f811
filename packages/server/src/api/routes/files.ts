import { applyBatch } from '../../data/files/batch.ts'
import { createDownload } from '../http/download.ts'
import type { ApiDeps, Handlers } from '../route.ts'

const DEFAULT_LIST_ENTRIES = 10_000

export function fileRoutes({ files }: ApiDeps) {
  const download = createDownload(files)
  return {
    readFile: ({ params, query, ...call }) => download(params.id, query.path, call),
    writeFile: ({ params, query: { path, ...options }, body, signal }) =>
      files.write(params.id, path, body, { ...options, parents: options.parents ?? true, signal }),
    removeFile: ({ params, query, signal }) =>
      files.remove(params.id, query.path, { recursive: query.recursive ?? false, signal }),
    listFiles: ({ params, query, signal }) =>
      files.list(params.id, query.path, {
        depth: query.depth ?? 1,
        limit: query.limit ?? DEFAULT_LIST_ENTRIES,
        signal,
      }),
    statFile: ({ params, query }) => files.stat(params.id, query.path, { follow: query.follow ?? true }),
    makeDirectory: ({ params, body: { path, ...options } }) =>
      files.mkdir(params.id, path, { ...options, parents: options.parents ?? true }),
    movePath: ({ params, body }) =>
      files.move(params.id, body.from, body.to, { overwrite: body.overwrite ?? false }),
    copyPath: ({ params, body, signal }) =>
      files.copy(params.id, body.from, body.to, {
        recursive: body.recursive ?? false,
        overwrite: body.overwrite ?? false,
        signal,
      }),
    batchFiles: async ({ params, body, signal }) => ({
      results: await applyBatch(files, params.id, body.files, { signal }),
    }),
  } satisfies Partial<Handlers>
}
