import type { ApiDeps, Handlers } from '../route.ts'

export function overlayRoutes({ overlays }: ApiDeps) {
  return {
    createOverlay: ({ params, body }) => overlays.create(params.id, body),
    listOverlays: ({ params }) => ({ overlays: overlays.list(params.id) }),
    getOverlay: ({ params }) => overlays.get(params.id, params.oid),
    deleteOverlay: ({ params }) => overlays.destroy(params.id, params.oid),
  } satisfies Partial<Handlers>
}
