// The native HTTP API: every route of the contract's table, mounted. serve.ts puts it on a port.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { getRequestListener, RequestError } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { AUTO_RESUMED, IsletError, ROUTES, type Route, type RouteName } from '@islet/contract'
import { Hono } from 'hono'
import type { Log } from '../log.ts'
import { readCall } from './http/call.ts'
import { insideOf } from './http/caller.ts'
import { asIsletError, sendError } from './http/errors.ts'
import { keyGate } from './http/gates/auth.ts'
import { createCors } from './http/gates/cors.ts'
import { createDrain } from './http/gates/draining.ts'
import { hostGate } from './http/gates/host.ts'
import { type ApiEnv, begin, pathOf } from './http/request.ts'
import { noSuchRoute } from './http/router.ts'
import { send } from './http/send.ts'
import { Uses } from './http/uses.ts'
import { mountDocs } from './openapi/docs.ts'
import { mountOpenApi } from './openapi/openapi.ts'
import type { ApiDeps, Handlers } from './route.ts'
import { archiveRoutes } from './routes/archive.ts'
import { checkpointRoutes } from './routes/checkpoints.ts'
import { codeRoutes } from './routes/code.ts'
import { envFileRoutes } from './routes/env-files.ts'
import { eventRoutes } from './routes/events.ts'
import { execRoutes } from './routes/exec.ts'
import { fileRoutes } from './routes/files.ts'
import { imageRoutes } from './routes/images.ts'
import { lifecycleRoutes } from './routes/lifecycle.ts'
import { overlayRoutes } from './routes/overlays.ts'
import { portRoutes } from './routes/ports.ts'
import { processRoutes } from './routes/processes.ts'
import { sandboxRoutes } from './routes/sandboxes.ts'
import { serverRoutes } from './routes/server.ts'
import { serviceRoutes } from './routes/services.ts'
import { signalRoutes, signalsRoute } from './routes/signals.ts'
import { signedFileRoutes } from './routes/signed-files.ts'
import { snapshotRoutes } from './routes/snapshots.ts'
import { storeRoutes } from './routes/store.ts'
import { terminalRoutes } from './routes/terminals.ts'
import { tokenRoutes } from './routes/tokens.ts'
import { watcherEventsRoute, watcherRoutes } from './routes/watchers.ts'
import { attachRoute } from './sockets/attach.ts'
import { createUpgrade } from './sockets/upgrade.ts'

export interface Api {
  app: Hono<ApiEnv>
  /** For http.createServer. */
  listener(incoming: IncomingMessage, outgoing: ServerResponse): void
  attachWebSockets(server: Server): void
  /** Whether a request that asks for another protocol gets it; else it is served as if it had not. */
  isUpgrade(incoming: IncomingMessage): boolean
  /** New requests are turned away with `draining` from now on; running ones go on. */
  drain(): void
  /** Ends the WebSockets. */
  close(): void
}

export function createApi(deps: ApiDeps): Api {
  const drain = createDrain()
  const handlers: Handlers = {
    ...serverRoutes(deps),
    ...sandboxRoutes(deps),
    ...lifecycleRoutes(deps),
    ...checkpointRoutes(deps),
    ...snapshotRoutes(deps),
    ...eventRoutes(deps, { draining: drain.signal }),
    ...execRoutes(deps),
    ...processRoutes(deps),
    ...fileRoutes(deps),
    ...archiveRoutes(deps),
    ...imageRoutes(deps),
    ...codeRoutes(deps),
    ...envFileRoutes(deps),
    ...overlayRoutes(deps),
    ...portRoutes(deps),
    ...serviceRoutes(deps),
    ...signalRoutes(deps),
    ...signedFileRoutes(deps),
    ...storeRoutes(deps),
    ...terminalRoutes(deps),
    ...tokenRoutes(deps),
    ...watcherRoutes(deps),
  }
  const gates = [drain.check, hostGate(deps.config), keyGate(deps.key, deps.tokens, deps.sandboxes)]
  const upgrade = createUpgrade({
    gates,
    log: deps.log,
    sandboxes: deps.sandboxes,
    routes: {
      attachProcess: attachRoute(deps),
      signals: signalsRoute(deps),
      watcherEvents: watcherEventsRoute(deps),
    },
  })

  const app = new Hono<ApiEnv>()
  app.use(async (c, next) => {
    for (const gate of gates) await gate(c.env.incoming)
    await next()
  })
  for (const name of Object.keys(ROUTES) as RouteName[])
    mount(app, ROUTES[name], handlers[name] as AnyHandler, deps)
  mountOpenApi(app)
  mountDocs(app)
  app.notFound((c) => {
    sendError(noSuchRoute(pathOf(c.env.incoming)), c.env.incoming, c.env.outgoing, deps.log)
    return RESPONSE_ALREADY_SENT
  })
  app.onError((error, c) => {
    sendError(error, c.env.incoming, c.env.outgoing, deps.log)
    return RESPONSE_ALREADY_SENT
  })

  const cors = createCors(deps.config.corsOrigins)
  const listener = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    autoCleanupIncoming: false,
    errorHandler: (error) => unreadable(error, deps.log),
  })
  return {
    app,
    listener: (incoming, outgoing) => {
      // From inside a sandbox no name leads to a preview: those may be another sandbox's.
      const preview = insideOf(incoming) ? undefined : deps.previews.handlerOf(incoming)
      if (preview) return preview.serve(incoming, outgoing)
      begin(incoming, outgoing, deps.log)
      if (cors(incoming, outgoing)) return
      void listener(incoming, outgoing)
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

function mount(app: Hono<ApiEnv>, route: Route, handler: AnyHandler, { sandboxes, fleet }: ApiDeps): void {
  app.on(route.method, route.path.replace(/\{(\w+)\}/g, ':$1'), async (c) => {
    const call = await readCall(route, c, sandboxes)
    using hold = call.held
    using uses = new Uses(sandboxes, () => c.env.outgoing.setHeader(AUTO_RESUMED, 'true'))
    if (route.fills) fleet.disk.assertRoom()
    if (route.wakes) await uses.ofCall(call)
    const { autoResumed } = uses
    const used = { autoResumed, use: (id: string) => uses.add(id), hold: (id: string) => uses.hold(id) }
    const result = await handler(Object.assign(call, used))
    await send(route, result, c.env.incoming, c.env.outgoing, hold)
    return RESPONSE_ALREADY_SENT
  })
}

/** A request whose target or Host makes no URL: no route ever sees it. */
function unreadable(error: unknown, log: Log): Response {
  const known =
    error instanceof RequestError
      ? new IsletError('bad_request', `The request is not valid: ${error.message}.`)
      : asIsletError(error)
  if (known.code === 'internal') log.error({ err: error }, 'request failed')
  return Response.json(known.toBody(), { status: known.status })
}
