import type { ApiDeps, Handlers } from './route.ts'

export function codeRoutes({ code }: ApiDeps) {
  return {
    runCode: ({ params, body, signal }) => code.run(params.id, body, { signal }),
  } satisfies Partial<Handlers>
}
