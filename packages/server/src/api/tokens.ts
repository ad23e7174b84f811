import type { ApiDeps, Handlers } from './route.ts'

export function tokenRoutes({ control, tokens }: ApiDeps) {
  return {
    createToken: ({ params, body }) => {
      control.get(params.id)
      return tokens.issue(params.id, { lifetimeMs: body.expiresIn })
    },
  } satisfies Partial<Handlers>
}
