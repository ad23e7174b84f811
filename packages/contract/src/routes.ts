// Every route of the HTTP API. The server mounts and validates from this table, the types of SDK calls and OpenAPI are
// generated from it.
import type { z } from 'zod'
import { fillPath } from './path.ts'
import { agentRoutes } from './routes/agents.ts'
import { checkpointRoutes } from './routes/checkpoints.ts'
import { codeRoutes } from './routes/code.ts'
import { envFileRoutes } from './routes/env-files.ts'
import { eventRoutes } from './routes/events.ts'
import { fileRoutes } from './routes/files.ts'
import { imageRoutes } from './routes/images.ts'
import { lifecycleRoutes } from './routes/lifecycle.ts'
import { overlayRoutes } from './routes/overlays.ts'
import { portRoutes } from './routes/ports.ts'
import { processRoutes } from './routes/processes.ts'
import type { Route } from './routes/route.ts'
import { sandboxRoutes } from './routes/sandboxes.ts'
import { serverRoutes } from './routes/server.ts'
import { serviceRoutes } from './routes/services.ts'
import { signalRoutes } from './routes/signals.ts'
import { snapshotRoutes } from './routes/snapshots.ts'
import { storeRoutes } from './routes/store.ts'
import { terminalRoutes } from './routes/terminals.ts'
import { tokenRoutes } from './routes/tokens.ts'
import { watcherRoutes } from './routes/watchers.ts'

export { AUTO_RESUMED, OUTPUT_OFFSET, type Route } from './routes/route.ts'

export const ROUTES = {
  ...serverRoutes,
  ...sandboxRoutes,
  ...lifecycleRoutes,
  ...checkpointRoutes,
  ...snapshotRoutes,
  ...eventRoutes,
  ...tokenRoutes,
  ...processRoutes,
  ...terminalRoutes,
  ...codeRoutes,
  ...agentRoutes,
  ...fileRoutes,
  ...watcherRoutes,
  ...envFileRoutes,
  ...overlayRoutes,
  ...serviceRoutes,
  ...portRoutes,
  ...signalRoutes,
  ...storeRoutes,
  ...imageRoutes,
} as const satisfies Record<string, Route>

export type RouteName = keyof typeof ROUTES
export type RouteOf<Name extends RouteName> = (typeof ROUTES)[Name]

type Input<Schema> = Schema extends z.ZodType ? z.input<Schema> : undefined
type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined
export type BodyOf<Name extends RouteName> =
  RouteOf<Name> extends { body: infer Body } ? Input<Body> : undefined
export type ResponseOf<Name extends RouteName> = Output<RouteOf<Name>['response']>

/** The path of a route with its parameters percent-encoded. */
export function routePath(name: RouteName, params: Record<string, string> = {}): string {
  return fillPath(name, ROUTES[name].path, params)
}
