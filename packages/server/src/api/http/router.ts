// Which routes a path has, for telling "no such route" from "not with that method".
import { IsletError, ROUTES, type Route, type RouteName } from '@islet/contract'

const TABLE = (Object.entries(ROUTES) as [RouteName, Route][]).map(([name, route]) => ({
  name,
  route,
  pattern: new RegExp(`^${route.path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`),
}))

/** What to throw for a request that no route took. */
export function noSuchRoute(path: string): IsletError {
  const methods = new Set<string>(
    TABLE.filter(({ pattern }) => pattern.test(path)).map(({ route }) => route.method),
  )
  if (methods.size === 0) return new IsletError('route_not_found')
  if (methods.has('GET')) methods.add('HEAD')
  const allow = [...methods].sort()
  return new IsletError('method_not_allowed', `This route takes ${allow.join(', ')}.`, { details: { allow } })
}

/** The WebSocket route of a path, and its parameters. */
export function matchWebSocket(path: string) {
  for (const { name, route, pattern } of TABLE) {
    const match = route.websocket && pattern.exec(path)
    if (match) return { name, route, params: { ...match.groups } as Record<string, string> }
  }
  return undefined
}
