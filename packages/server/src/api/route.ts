// A route's handler gets one call, already checked against the contract, and returns a value. call.ts reads all calls,
// send.ts sends all answers.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Route, RouteName, RouteOf } from '@islet/contract'
import type { z } from 'zod'
import type { Credentials } from '../access/credentials.ts'
import type { MagicLinks } from '../access/links.ts'
import type { Sessions } from '../access/sessions.ts'
import type { Config } from '../config.ts'
import type { Fleet } from '../control/fleet.ts'
import type { Pruning } from '../control/prune.ts'
import type { Runtimes } from '../control/runtimes/runtimes.ts'
import type { Sandboxes } from '../control/sandboxes.ts'
import type { Checkpoints } from '../control/saved/checkpoints.ts'
import type { Snapshots } from '../control/saved/snapshots.ts'
import type { Agents } from '../data/agents/agents.ts'
import type { CodeRunner } from '../data/code/code.ts'
import type { EnvFiles } from '../data/env-files/env-files.ts'
import type { Files } from '../data/files/files.ts'
import type { Told } from '../data/output/kept-bytes.ts'
import type { Overlays } from '../data/overlays/overlays.ts'
import type { Patches } from '../data/patches/patches.ts'
import type { Ports } from '../data/ports.ts'
import type { Processes } from '../data/processes/processes.ts'
import type { Services } from '../data/services/services.ts'
import type { Signals } from '../data/signals/signals.ts'
import type { Store } from '../data/store.ts'
import type { Terminals } from '../data/terminals.ts'
import type { Watchers } from '../data/watchers/watchers.ts'
import type { Images } from '../image/image.ts'
import type { Log } from '../log.ts'
import type { Previews } from '../preview/previews.ts'
import type { Tokens } from '../tokens.ts'
import type { Chunks } from '../wire/chunks.ts'
import type { Caller } from './http/caller.ts'
import type { WebSocketRoute } from './sockets/upgrade.ts'

export interface ApiDeps {
  sandboxes: Sandboxes
  fleet: Fleet
  checkpoints: Checkpoints
  snapshots: Snapshots
  patches: Patches
  pruning: Pruning
  processes: Processes
  files: Files
  code: CodeRunner
  agents: Agents
  terminals: Terminals
  watchers: Watchers
  envFiles: EnvFiles
  overlays: Overlays
  services: Services
  ports: Ports
  previews: Previews
  signals: Signals
  store: Store
  images: Images
  runtimes: Runtimes
  tokens: Tokens
  sessions: Sessions
  links: MagicLinks
  credentials: Credentials
  log: Log
  config: Pick<Config, 'host' | 'publicUrl' | 'corsOrigins' | 'tlsCert' | 'importDirs'>
}

export interface Call<Name extends RouteName> {
  params: Record<ParamOf<RouteOf<Name>['path']>, string>
  query: QueryOutput<Name>
  body: BodyOutput<Name>
  headers: IncomingHttpHeaders
  idempotencyKey: string | undefined
  /** Undefined on open routes. */
  caller: Caller | undefined
  /** The sandbox was suspended and was woken for this call. */
  autoResumed: boolean
  /** Wakes a sandbox that the path does not name, and keeps it awake until the answer is sent. */
  use(sandboxId: string): Promise<void>
  /** For calls that only wait: keeps a running sandbox from being idle; does not wake a suspended one. */
  hold(sandboxId: string): void
  /** The answer breaks off when this session token is revoked or expires. Throws if it cannot be used now. */
  endWithToken(sandboxId: string, tokenId: string): void
  /** HEAD: the headers of the answer to GET, no body. */
  isHead: boolean
  /** Aborts when the client goes away before it was answered. */
  readonly signal: AbortSignal
}

export type Handler<Name extends RouteName> = (call: Call<Name>) => Result<Name> | Promise<Result<Name>>
export type Handlers = { [Name in Exclude<RouteName, WebSocketName>]: Handler<Name> }
export type Sockets = Record<WebSocketName, WebSocketRoute>

/** A route of the contract's table, as the router keeps it. */
export interface Endpoint {
  route: Route
  serve(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    params: Record<string, string>,
  ): void | Promise<void>
  /** Undefined unless the route is a WebSocket. */
  open: WebSocketRoute | undefined
}

/** A JSON answer that needs another status than the route's own. */
export class Answer<T> {
  readonly status: number
  readonly value: T

  constructor(status: number, value: T) {
    this.status = status
    this.value = value
  }
}

/** A JSON answer that is already text, in the shape of the route's schema. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Raw bytes. If the body is not as long as its Content-Length, the connection is broken. */
export class Bytes {
  readonly body: Chunks | undefined
  readonly headers: Record<string, string | number>
  readonly status: number
  /** If the client takes nothing for this long, it is given up. Default: a minute. */
  readonly stallMs: number | undefined

  constructor(
    body: Chunks | undefined,
    headers: Record<string, string | number>,
    status = 200,
    { stallMs }: { stallMs?: number } = {},
  ) {
    this.body = body
    this.headers = headers
    this.status = status
    this.stallMs = stallMs
  }
}

/** One JSON value per line while the work runs. A failure before the first line is an ordinary error. */
export class Lines<T> {
  readonly work: (emit: (line: T) => void) => Promise<void>

  constructor(work: (emit: (line: T) => void) => Promise<void>) {
    this.work = work
  }
}

type WebSocketName = {
  [Name in RouteName]: RouteOf<Name> extends { websocket: true } ? Name : never
}[RouteName]
type Streamed<Name extends RouteName> =
  RouteOf<Name> extends { streams: true } | { lines: z.ZodType } ? Bytes : never
type Progressed<Name extends RouteName> =
  RouteOf<Name> extends { progress: z.ZodType } ? Lines<unknown> : never
type ParamOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamOf<Rest>
  : never
type QueryOutput<Name extends RouteName> =
  RouteOf<Name> extends { query: infer Query extends z.ZodType } ? z.output<Query> : Record<string, never>
type BodyOutput<Name extends RouteName> =
  RouteOf<Name> extends { body: infer Body }
    ? Body extends z.ZodType
      ? z.output<Body>
      : AsyncIterable<Buffer>
    : undefined
type Result<Name extends RouteName> = RouteOf<Name>['response'] extends infer Response
  ? Response extends z.ZodType
    ? Told<z.output<Response>> | Answer<z.output<Response>> | JsonText | Streamed<Name> | Progressed<Name>
    : Response extends 'bytes'
      ? Bytes
      : Response extends 'lines'
        ? Lines<unknown>
        : // biome-ignore lint/suspicious/noConfusingVoidType: what a function without a result returns
          void | Bytes
  : never
