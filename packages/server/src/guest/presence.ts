// Whether a guest is connected: the current connection, callers that wait for the next one, how often the guest broke the
// protocol, and the end once it is gone for good.
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { IsletError } from '@islet/contract'
import { Connection } from './connection.ts'
import { clean, sandboxLost } from './errors.ts'
import type { LinkEvents, LinkLog, LinkOptions } from './link.ts'
import { LinkListener } from './listener.ts'
import { GuestProcesses } from './processes/guest-processes.ts'

const HELLO_TIMEOUT_MS = 5000
/** A guest redials within half a second; this allows for a machine under load. */
const AWAY_TIMEOUT_MS = 10_000
/** Each may hold a window of data. */
const MAX_REQUESTS = 1024
/** After so many breaches of the protocol without a good answer between them the guest counts as hostile. */
const MAX_VIOLATIONS = 10
/** How long `suspend` waits for unanswered requests, and then for the guest to close its end. */
const ANSWERS_TIMEOUT_MS = 1000
const HANGUP_TIMEOUT_MS = 2000
const ANSWERS_PAUSE_MS = 2

export class Presence {
  /** Set from HELLO to the end of the connection. */
  connection: Connection | undefined
  bootId = ''
  readonly events = new EventEmitter<LinkEvents>()
  readonly processes = new GuestProcesses(this)
  readonly #options: LinkOptions
  readonly #log: LinkLog | undefined
  /** The connection, also before HELLO. */
  #admitted: Connection | undefined
  #listener: LinkListener | undefined
  #violations = 0
  #lost: IsletError | undefined
  #closing: Promise<void> | undefined
  #next: PromiseWithResolvers<void> | undefined
  /** Settled by `resume` or the end. */
  #suspended: PromiseWithResolvers<void> | undefined
  /** Resolves at the end of the last connection. */
  #gone = Promise.resolve()
  #onGone = () => {}

  constructor(options: LinkOptions) {
    this.#options = options
    this.#log = options.log
  }

  async open(socketPath = this.#options.socketPath): Promise<void> {
    this.#listener = await LinkListener.open({
      socketPath,
      occupied: () => this.#admitted !== undefined,
      admit: (socket) => this.#admit(socket),
      onFlood: () => this.lose('the sandbox flooded the server with connections'),
    })
  }

  connected(signal?: AbortSignal): Promise<void> {
    return this.ready({ timeoutMs: this.#options.awayTimeoutMs ?? AWAY_TIMEOUT_MS, signal })
  }

  ready({ timeoutMs, signal }: { timeoutMs?: number; signal?: AbortSignal | undefined } = {}): Promise<void> {
    if (this.#lost) return Promise.reject(this.#lost)
    if (signal?.aborted) return Promise.reject(signal.reason)
    if (this.connection) return Promise.resolve()
    this.#next ??= Promise.withResolvers<void>()
    const next = this.#next.promise
    return new Promise<void>((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined
      let settled = false
      // The deadline does not run while the link is suspended.
      const arm = () => {
        if (timeoutMs === undefined || settled) return
        if (this.#suspended) void this.#suspended.promise.then(arm)
        else timer = setTimeout(expire, timeoutMs)
      }
      const expire = () => (this.#suspended ? arm() : settle(() => reject(awayTooLong(timeoutMs!))))
      const onAbort = () => settle(() => reject(signal?.reason))
      const settle = (how: () => void) => {
        settled = true
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        how()
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      arm()
      next.then(
        () => settle(resolve),
        (error) => settle(() => reject(error)),
      )
    })
  }

  /** A request was answered well: earlier breaches of the protocol no longer count. */
  succeeded(): void {
    this.#violations = 0
  }

  async ping(): Promise<void> {
    const { connection } = this
    if (connection) {
      try {
        return await connection.ping()
      } catch (error) {
        if (!connection.closed) throw error
      }
    }
    await this.connected()
    return this.connection?.ping()
  }

  async suspend(): Promise<void> {
    if (this.#lost) throw this.#lost
    this.#suspended ??= Promise.withResolvers<void>()
    const closing = this.#listener?.close()
    this.#listener = undefined
    if (this.#admitted) await this.#hangUp(this.#admitted)
    await closing
    if (this.#lost) throw this.#lost
  }

  async resume(socketPath: string): Promise<void> {
    if (this.#lost) throw this.#lost
    if (!this.#suspended) throw new IsletError('internal', 'The link is not suspended.')
    await this.open(socketPath)
    if (this.#lost) {
      await this.#listener?.close()
      throw this.#lost
    }
    this.#suspended?.resolve()
    this.#suspended = undefined
  }

  /** The sandbox is gone for good. */
  lose(reason: string): void {
    if (this.#lost) return
    this.#lost = sandboxLost(reason)
    this.#closing = this.#listener?.close()
    this.#admitted?.destroy(reason)
    this.#next?.reject(this.#lost)
    this.#next?.promise.catch(() => {})
    this.#suspended?.resolve()
    this.#suspended = undefined
    this.processes.onLost(this.#lost)
    this.#emit('lost', { reason: clean(reason, 200) })
  }

  async close(): Promise<void> {
    this.lose('the link was closed')
    await this.#closing
  }

  /** Resolves when the connection is closed at both ends. */
  async #hangUp(connection: Connection): Promise<void> {
    // New requests wait for the next connection.
    const greeted = this.connection === connection
    this.connection = undefined
    const deadline = performance.now() + ANSWERS_TIMEOUT_MS
    while (connection.awaited && performance.now() < deadline) await sleep(ANSWERS_PAUSE_MS)
    if (greeted) connection.out.send('HANGUP', 0, { delayMs: 0 })
    else connection.destroy('the link was suspended')
    const timer = setTimeout(() => connection.destroy('the guest did not hang up'), HANGUP_TIMEOUT_MS)
    await this.#gone
    clearTimeout(timer)
  }

  #admit(socket: Socket): void {
    if (this.#lost || this.#suspended) {
      socket.destroy()
      return
    }
    this.#gone = new Promise((resolve) => {
      this.#onGone = resolve
    })
    this.#admitted = new Connection(socket, {
      helloTimeoutMs: this.#options.helloTimeoutMs ?? HELLO_TIMEOUT_MS,
      maxRequests: this.#options.maxRequests ?? MAX_REQUESTS,
      onHello: (connection) => this.#onHello(connection),
      onClose: (connection, reason, violation) => this.#onClose(connection, reason, violation),
      onBug: (error) => this.#log?.error({ err: error }, 'handling a frame failed'),
    })
  }

  #onHello(connection: Connection): void {
    const replaced = this.bootId !== '' && this.bootId !== connection.bootId
    this.bootId = connection.bootId
    this.connection = connection
    this.processes.onConnect(connection, replaced)
    this.#next?.resolve()
    this.#next = undefined
    this.#emit('connect', { bootId: connection.bootId, replaced })
  }

  #onClose(connection: Connection, reason: string, violation: boolean): void {
    const greeted = connection.bootId !== ''
    this.connection = undefined
    this.#admitted = undefined
    this.#onGone()
    if (greeted) this.#emit('disconnect', { reason, violation })
    if (!violation || this.#lost) return
    this.#violations++
    this.#log?.warn({ reason, violations: this.#violations }, 'the guest broke the protocol')
    if (this.#violations >= MAX_VIOLATIONS) this.lose(`its guest broke the protocol repeatedly: ${reason}`)
  }

  #emit<K extends keyof LinkEvents>(event: K, ...args: LinkEvents[K]): void {
    try {
      ;(this.events as EventEmitter).emit(event, ...args)
    } catch (error) {
      this.#log?.error({ err: error }, `a listener of ${event} failed`)
    }
  }
}

function awayTooLong(timeoutMs: number): IsletError {
  return new IsletError('timeout', `The sandbox's guest did not connect within ${timeoutMs} ms.`)
}
