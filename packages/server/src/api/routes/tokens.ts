import { IsletError } from '@islet/contract'
import type { ApiDeps, Handlers } from '../route.ts'

export function tokenRoutes({ sandboxes, tokens }: ApiDeps) {
  return {
    createToken: ({ params, body }) => {
      const { status } = sandboxes.get(params.id)
      if (status === 'stopped') {
        throw new IsletError('invalid_state', `Sandbox ${params.id} is stopped: there is nothing to reach.`)
      }
      return tokens.issue(params.id, { lifetimeMs: body.expiresIn })
    },
  } satisfies Partial<Handlers>
}
