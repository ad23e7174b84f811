import { IsletError } from '@islet/contract'
import type { ApiDeps, Call, Handlers } from './route.ts'

export function portRoutes({ ports }: ApiDeps) {
  const notYet = (): never => {
    throw new IsletError('not_supported')
  }
  return {
    listPorts: async ({ params }: Call<'listPorts'>) => ({
      ports: (await ports.list(params.id)).map(({ session: _, ...port }) => port),
    }),
    createPreview: notYet,
    listPreviews: notYet,
    deletePreview: notYet,
  } satisfies Partial<Handlers>
}
