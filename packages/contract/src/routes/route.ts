import type { z } from 'zod'

export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** {name} is a path parameter. */
  path: string
  summary: string
  tag: string
  /** Needs no API key: anyone may call it, or the address itself carries a grant. */
  open?: true
  /** A sandbox's token is not enough: it reaches beyond that sandbox. */
  keyOnly?: true
  /** The caller's token names the sandbox; the address does not. */
  ofCaller?: true
  /** From inside a sandbox it takes no token: whatever runs there may call it. */
  tokenless?: true
  /** Wants the sandbox to run: one that stands still is woken first, and none is idle while this is answered. */
  wakes?: true
  /** Writes what is sent, or more: refused with `disk_low` while the disk of the server is. */
  fills?: true
  /** May answer with text/event-stream in place of `response`, and with 204 when there is nothing more to tell. */
  streams?: true
  /** Takes an Idempotency-Key header. */
  idempotent?: true
  /** Upgrades to a WebSocket. */
  websocket?: true
  query?: z.ZodType
  /** JSON; 'bytes' is a raw body of any size. */
  body?: z.ZodType | 'bytes'
  /** Of a JSON body. Default: LIMITS.jsonBodyBytes. */
  bodyBytes?: number
  /** JSON; 'bytes' a raw body, 'lines' one JSON value per line, null no body. */
  response: z.ZodType | 'bytes' | 'lines' | null
  status: number
}

/** The header of an answer whose sandbox was woken for it: 'true'. */
export const AUTO_RESUMED = 'Islet-Auto-Resumed'

export const SANDBOX = '/v1/sandboxes/{id}'
export const PROCESS = `${SANDBOX}/processes/{pid}` as const
