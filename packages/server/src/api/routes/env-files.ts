import type { ApiDeps, Handlers } from '../route.ts'

export function envFileRoutes({ envFiles }: ApiDeps) {
  return {
    readEnvFile: async ({ params, query, signal }) => ({
      variables: await envFiles.read(params.id, query.file, { signal }),
    }),
    updateEnvFile: async ({ params, query, body, signal }) => ({
      keys: await envFiles.update(params.id, query.file, body.variables, { signal }),
    }),
    removeEnvKeys: async ({ params, query, signal }) => ({
      keys: await envFiles.remove(params.id, query.file, [query.key].flat(), { signal }),
    }),
  } satisfies Partial<Handlers>
}
