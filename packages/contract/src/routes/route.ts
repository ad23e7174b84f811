import type { z } from 'zod'

export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** {name} is a path parameter. */
  path: string
  summary: string
  tag: string
  /** Needs no API key: anyone may call it, or the URL itself holds a grant. */
  open?: true
  /** A sandbox token is not enough: the route reaches beyond that sandbox. */
  keyOnly?: true
  /** The caller's token names the sandbox; the path does not. */
  ofCaller?: true
  /** From inside a sandbox no token is needed: any program there may call it. */
  tokenless?: true
  /** Needs a running sandbox: a suspended one is woken first, and it is not idle until the answer is sent. */
  wakes?: true
  /** Writes to the server's disk: refused with `disk_low` while that disk is low. */
  fills?: true
  /** May answer with text/event-stream instead of `response`, and with 204 if no more events will come. */
  streams?: true
  /** With `Accept: application/x-ndjson` it answers with lines of this shape, and the last one holds `response`. */
  progress?: z.ZodType
  /** With `stream` in the body it answers with one JSON value of this per line, instead of `response`. */
  lines?: z.ZodType
  /** Takes an Idempotency-Key header. */
  idempotent?: true
  /** Upgrades to a WebSocket. */
  websocket?: true
  query?: z.ZodType
  /** JSON; 'bytes' is a raw body of any size. */
  body?: z.ZodType | 'bytes'
  /** The most bytes of a JSON body. Default: LIMITS.jsonBodyBytes. */
  bodyBytes?: number
  /** JSON; 'bytes' is a raw body, 'lines' is one JSON value per line, null is no body. */
  response: z.ZodType | 'bytes' | 'lines' | null
  status: number
}

type Written = Omit<Route, 'tag' | 'status'> & { status?: number }

/** Refuses a misspelled field. */
type Known<Table> = {
  [Name in keyof Table]: Exclude<keyof Table[Name], keyof Route> extends never ? unknown : never
}

/** The routes of one tag. Default status: 200, without a body 204, for a WebSocket 101. */
export function tagged<const Table extends Record<string, Written>>(
  tag: string,
  table: Table & Known<Table>,
) {
  const routes = Object.entries(table).map(([name, route]) => {
    const status = route.websocket ? 101 : route.response === null ? 204 : 200
    return [name, { status, ...route, tag }]
  })
  return Object.fromEntries(routes) as {
    [Name in keyof Table]: Table[Name] & { tag: string; status: number }
  }
}

/** A header of the answer; 'true' if the sandbox was woken for the call. */
export const AUTO_RESUMED = 'Islet-Auto-Resumed'

/** A header of the answer to a URL of output: the offset of its first byte. */
export const OUTPUT_OFFSET = 'Islet-Output-Offset'

export const SANDBOX = '/v1/sandboxes/{id}'
export const PROCESS = `${SANDBOX}/processes/{pid}` as const
