// The link: the server's end of the guest's one socket, as a Guest. This file composes: presence.ts knows whether a guest is
// connected, connection.ts is one connection, requests/ has a file per kind of request, processes/ follows processes.
import type { EventEmitter } from 'node:events'
import { IsletError } from '@islet/contract'
import { MAX_PAYLOAD } from '../wire/frames.ts'
import { dial } from './dial/dial.ts'
import { Dials } from './dial/dials.ts'
import type { Guest, SetupFile } from './guest.ts'
import type { FileRecord } from './messages.gen.ts'
import { Presence } from './presence.ts'
import { checkMode, checkNumber, checkOwner, checkPath, checkPort } from './requests/check.ts'
import { fileRequests } from './requests/files.ts'
import { toExposed, toPort } from './requests/records.ts'
import { call, nothing } from './requests/request.ts'
import { watch } from './requests/watch.ts'

export interface Link extends Guest {
  readonly events: EventEmitter<LinkEvents>
  /** The sandbox is gone for good: everything pending, now and later, rejects with `sandbox_lost`. */
  lost(reason: string): void
  /**
   * Stops listening and has the guest close the connection; resolves when the guest's end is closed. Unanswered requests get a
   * short time to finish; processes and new requests wait for `resume`, without a deadline. Open streams (downloads, dialed
   * ports, watches) end as with any lost connection. A frozen guest cannot close its end: suspend first, then freeze.
   */
  suspend(): Promise<void>
  /** Listens again, perhaps on another path; the guest redials by itself and everything goes on. */
  resume(socketPath: string): Promise<void>
  /** Stops listening and drops the connection; pending calls reject with `sandbox_lost`. Closing twice is fine. */
  close(): Promise<void>
}

export interface LinkEvents {
  /** `replaced`: it is another guest than before; the processes of the old one are gone. */
  connect: [{ bootId: string; replaced: boolean }]
  disconnect: [{ reason: string; violation: boolean }]
  lost: [{ reason: string }]
}

/** The part of pino that the link needs. */
export interface LinkLog {
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface LinkOptions {
  /** Created here with the mode that the umask gives; the caller sets another one. */
  socketPath: string
  log?: LinkLog
  /** A connection without HELLO after this time is dropped. */
  helloTimeoutMs?: number
  /** How long a request waits for a guest that is not connected. Processes that run wait without a deadline. */
  awayTimeoutMs?: number
  /** Concurrent requests, each of which may hold a window of data; processes do not count. */
  maxRequests?: number
}

export async function listenLink(options: LinkOptions): Promise<Link> {
  const presence = new Presence(options)
  await presence.open()
  const { processes } = presence
  const dials = new Dials()
  return {
    ...fileRequests(presence),
    events: presence.events,
    get connected() {
      return presence.connection !== undefined
    },
    get bootId() {
      return presence.bootId
    },
    ready: (options) => presence.ready(options),
    spawn: (spec, sink) => processes.spawn(spec, sink),
    attach: (id, offset, sink) => processes.attach(id, offset, sink),
    processes: () => processes.list(),
    signal: (id, signal, options) => processes.signal(id, signal, options),
    resize: (id, size) => processes.resize(id, size),
    killAll: () => processes.killAll(),
    async watch(path, { recursive, ignore, signal }) {
      checkPath(path)
      const fields = { path, recursive: recursive ? 1 : 0, ignore: ignore && [...ignore] }
      return watch(presence, { name: 'WATCH', fields, about: { path }, signal, again: true })
    },
    async dial(port, options = {}) {
      checkPort(port)
      return dial(presence, dials, { port, ...options })
    },
    ports: () =>
      call(presence, { name: 'PORTS', fields: {}, about: {}, again: true }, (ok) =>
        (ok.port ?? []).map(toPort),
      ),
    expose: (socketName) =>
      call(presence, { name: 'EXPOSE', fields: { socket: socketName }, about: {}, again: true }, toExposed),
    setup: (files) => setup(presence, files),
    ping: () => presence.ping(),
    hangup(delayMs) {
      checkNumber('delayMs', delayMs)
      presence.connection?.out.send('HANGUP', 0, { delayMs })
    },
    suspend: () => presence.suspend(),
    resume: (socketPath) => presence.resume(socketPath),
    lost: (reason) => presence.lose(reason),
    close: () => presence.close(),
  }
}

/** Bytes of a file beside its content and path; most of them for the owner. */
const SETUP_FILE_BYTES = 1024

async function setup(presence: Presence, files: readonly SetupFile[]): Promise<void> {
  let batch: FileRecord[] = []
  let bytes = 0
  const send = () => call(presence, { name: 'SETUP', fields: { file: batch }, about: {} }, nothing)
  for (const { path, content, mode, owner } of files) {
    checkPath(path)
    checkMode(mode)
    checkOwner(owner)
    const record = { path, content: Buffer.from(content as Uint8Array), mode, owner }
    const size = SETUP_FILE_BYTES + record.content.length + path.length * 3
    if (size > MAX_PAYLOAD) throw new IsletError('bad_request', `${path} is larger than a setup file may be.`)
    if (bytes + size > MAX_PAYLOAD) {
      await send()
      batch = []
      bytes = 0
    }
    batch.push(record)
    bytes += size
  }
  if (batch.length > 0) await send()
}
