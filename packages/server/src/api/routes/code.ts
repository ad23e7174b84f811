import type { ApiDeps, Handlers } from '../route.ts'

export function codeRoutes({ code }: ApiDeps) {
  return {
    runCode: async ({ params, body, signal, autoResumed }) => ({
      ...(await code.run(params.id, body, { signal })),
      autoResumed,
    }),
  } satisfies Partial<Handlers>
}
