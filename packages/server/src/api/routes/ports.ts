import { IsletError } from '@islet/contract'
import { via } from '../http/reached.ts'
import type { ApiDeps, Call, Handlers } from '../route.ts'

export function portRoutes({ ports, previews }: ApiDeps) {
  return {
    listPorts: async ({ params }: Call<'listPorts'>) => ({
      ports: (await ports.list(params.id)).map(({ session: _, ...port }) => port),
    }),
    createPreview: ({ params, body, headers, caller }) => {
      // A preview gets all requests for its domain, so a domain could take requests from this API.
      if (body.domain && caller?.kind !== 'admin')
        throw new IsletError('forbidden', 'Only the admin key may give a preview a domain of its own.')
      return previews.create(params.id, body, via(headers))
    },
    listPreviews: ({ params, headers }) => ({ previews: previews.list(params.id, via(headers)) }),
    deletePreview: ({ params }) => previews.delete(params.id, portOf(params.port)),
  } satisfies Partial<Handlers>
}

function portOf(text: string): number {
  if (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new IsletError('preview_not_found', 'A port is a number from 1 to 65535.')
}
