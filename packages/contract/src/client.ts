// The contract for clients: the same types, routes, errors and limits without zod, which would dominate the size of a small program.
import { type Calls, ROUTES } from './client.gen.ts'
import { fillPath } from './path.ts'

export * from './client.gen.ts'
export * from './errors.ts'
export * from './ids.ts'
export * from './limits.ts'
export * from './shape.ts'
export * from './units.ts'

export type RouteName = keyof Calls
export type BodyOf<Name extends RouteName> = Calls[Name]['body']
export type ResponseOf<Name extends RouteName> = Calls[Name]['response']

/** The path of a route with its parameters percent-encoded. */
export function routePath(name: RouteName, params: Record<string, string> = {}): string {
  return fillPath(name, ROUTES[name].path, params)
}
