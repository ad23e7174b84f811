// The HTTP API: a router with every route of the contract's table, and the documentation pages. serve.ts puts it on a port.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { AUTO_RESUMED, IsletError, ROUTES, type Route, type RouteName } from '@islet/contract'
import { readCall } from './http/call.ts'
import { callerOf, insideOf } from './http/caller.ts'
import { sendError } from './http/errors.ts'
import { keyGate } from './http/gates/auth.ts'
import { createCors } from './http/gates/cors.ts'
import { createDrain } from './http/gates/draining.ts'
import { hostGate } from './http/gates/host.ts'
import { begin, pathOf } from './http/request.ts'
import { Router } from './http/router.ts'
import { send } from './http/send.ts'
import { Uses } from './http/uses.ts'
import { PAGES } from './pages.ts'
import type { ApiDeps, Endpoint, Handlers, Sockets } from './route.ts'
import { agentRoutes } from './routes/agents.ts'
import { archiveRoutes } from './routes/archive.ts'
import { checkpointRoutes } from './routes/checkpoints.ts'
import { codeRoutes } from './routes/code.ts'
import { envFileRoutes } from './routes/env-files.ts'
import { eventRoutes } from './routes/events.ts'
import { fileRoutes } from './routes/files.ts'
import { imageRoutes } from './routes/images.ts'
import { overlayRoutes } from './routes/overlays.ts'
import { portRoutes } from './routes/ports.ts'
import { processRoutes } from './routes/processes.ts'
import { sandboxRoutes } from './routes/sandboxes.ts'
import { serverRoutes } from './routes/server.ts'
import { serviceRoutes } from './routes/services.ts'
import { signalRoutes } from './routes/signals.ts'
import { signedFileRoutes } from './routes/signed-files.ts'
import { signedStreamRoutes } from './routes/signed-streams.ts'
import { snapshotRoutes } from './routes/snapshots.ts'
import { storeRoutes } from './routes/store.ts'
import { terminalRoutes } from './routes/terminals.ts'
import { tokenRoutes } from './routes/tokens.ts'
import { watcherRoutes } from './routes/watchers.ts'
import { attachSocket } from './sockets/attach.ts'
import { signalsSocket } from './sockets/signals.ts'
import { createUpgrade } from './sockets/upgrade.ts'
import { watcherSocket } from './sockets/watchers.ts'

export interface Api {
  /** For http.createServer. */
  listener(incoming: IncomingMessage, outgoing: ServerResponse): void
  attachWebSockets(server: Server): void
  /** If false, a request that asks for another protocol is served as if it had not asked. */
  isUpgrade(incoming: IncomingMessage): boolean
  /** Refuses new requests with `draining`; running requests continue. */
  drain(): void
  /** Ends the WebSockets. */
  close(): void
}

export function createApi(deps: ApiDeps): Api {
  const drain = createDrain()
  const handlers: Handlers = {
    ...serverRoutes(deps),
    ...sandboxRoutes(deps),
    ...checkpointRoutes(deps),
    ...snapshotRoutes(deps),
    ...eventRoutes(deps, { draining: drain.signal }),
    ...processRoutes(deps),
    ...fileRoutes(deps),
    ...archiveRoutes(deps),
    ...imageRoutes(deps),
    ...codeRoutes(deps),
    ...agentRoutes(deps),
    ...envFileRoutes(deps),
    ...overlayRoutes(deps),
    ...portRoutes(deps),
    ...serviceRoutes(deps),
    ...signalRoutes(deps),
    ...signedFileRoutes(deps),
    ...signedStreamRoutes(deps, { draining: drain.signal }),
    ...storeRoutes(deps),
    ...terminalRoutes(deps),
    ...tokenRoutes(deps),
    ...watcherRoutes(deps),
  }
  const sockets: Sockets = {
    attachProcess: attachSocket(deps),
    signals: signalsSocket(deps),
    watcherEvents: watcherSocket(deps),
  }
  const router = createRouter(handlers, sockets, deps)
  const gates = [drain.check, hostGate(deps.config), keyGate(deps)]
  const upgrade = createUpgrade({ ...deps, gates, router })
  const cors = createCors(deps.config.corsOrigins)

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    try {
      for (const gate of gates) await gate(incoming)
      const { method = '' } = incoming
      const path = pathOf(incoming)
      const page = method === 'GET' || method === 'HEAD' ? PAGES.get(path) : undefined
      if (page) return await page(incoming, outgoing)
      const { endpoint, params } = router.find(method, path)
      if (endpoint.route !== ROUTES.endSession) endWithSession(incoming, outgoing)
      await endpoint.serve(incoming, outgoing, params)
    } catch (error) {
      sendError(error, incoming, outgoing, deps.log)
    }
  }

  /** A call breaks off when the session token that made it is revoked or expires. */
  function endWithSession(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const caller = callerOf(incoming)
    const unwatch = caller && deps.credentials.watch(caller, () => outgoing.destroy())
    if (unwatch) outgoing.once('close', unwatch)
  }

  return {
    listener: (incoming, outgoing) => {
      // No Host leads from inside a sandbox to a preview: the preview may belong to another sandbox.
      const preview = insideOf(incoming) ? undefined : deps.previews.handlerOf(incoming)
      if (preview) return preview.serve(incoming, outgoing)
      begin(incoming, outgoing, deps.log)
      if (!cors(incoming, outgoing)) void serve(incoming, outgoing)
    },
    attachWebSockets: (server) => {
      server.on('upgrade', (incoming, socket, head) => {
        const preview = deps.previews.handlerOf(incoming)
        if (preview) preview.upgrade(incoming, socket, head)
        else upgrade.handle(incoming, socket, head)
      })
    },
    isUpgrade: (incoming) => {
      const preview = deps.previews.handlerOf(incoming)
      return preview?.isUpgrade(incoming) ?? incoming.headers.upgrade?.toLowerCase() === 'websocket'
    },
    drain: drain.begin,
    close: upgrade.close,
  }
}

type AnyHandler = (call: unknown) => unknown

function createRouter(handlers: Handlers, sockets: Sockets, deps: ApiDeps): Router<Endpoint> {
  const router = new Router<Endpoint>()
  for (const [name, route] of Object.entries(ROUTES) as [RouteName, Route][]) {
    const open = (sockets as Partial<Record<RouteName, Sockets[keyof Sockets]>>)[name]
    const handler = (handlers as Partial<Record<RouteName, unknown>>)[name] ?? notUpgraded
    const serve = serverOf(route, handler as AnyHandler, deps)
    router.add(route.method, route.path, { route, serve, open })
  }
  return router
}

function serverOf(
  route: Route,
  handler: AnyHandler,
  { sandboxes, fleet, sessions }: ApiDeps,
): Endpoint['serve'] {
  return async (incoming, outgoing, params) => {
    const call = await readCall(route, params, incoming, outgoing, sandboxes)
    using hold = call.held
    using uses = new Uses(sandboxes, () => outgoing.setHeader(AUTO_RESUMED, 'true'))
    if (route.fills) fleet.disk.assertRoom()
    if (route.wakes) await uses.ofCall(call)
    const { autoResumed } = uses
    const used = { autoResumed, use: (id: string) => uses.add(id), hold: (id: string) => uses.hold(id) }
    const endWithToken = (sandboxId: string, tokenId: string) =>
      void outgoing.once(
        'close',
        sessions.watchById(sandboxId, tokenId, () => outgoing.destroy()),
      )
    const result = await handler(Object.assign(call, used, { endWithToken }))
    await send(route, result, incoming, outgoing, hold)
  }
}

function notUpgraded(): never {
  throw new IsletError('bad_request', 'This route is a WebSocket.', { hint: 'Send Upgrade: websocket.' })
}
