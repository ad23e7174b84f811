import type { Socket } from './socket.ts'

const HIGH_BYTES = 4 * 1024 * 1024
const LOW_BYTES = 1024 * 1024

/** Handles the messages of a socket one after the other. Pauses the socket, if it can be paused, while too many wait. */
export class Inbox {
  /** The error that the handler threw. It closes the socket, and later messages are dropped. */
  failure: unknown
  readonly #socket: Socket
  readonly #handle: (data: unknown) => void | Promise<void>
  #waiting: unknown[] = []
  #waitingBytes = 0
  #isPaused = false
  #running: Promise<void> | undefined

  constructor(socket: Socket, handle: (data: unknown) => void | Promise<void>) {
    this.#socket = socket
    this.#handle = handle
  }

  push(data: unknown): void {
    if (this.failure !== undefined) return
    this.#waiting.push(data)
    this.#waitingBytes += sizeOf(data)
    if (this.#waitingBytes > HIGH_BYTES) this.#pause(true)
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  /** Resolves when no message waits. */
  async drained(): Promise<void> {
    while (this.#running) await this.#running
  }

  async #run(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const batch = this.#waiting
        this.#waiting = []
        for (const data of batch) {
          await this.#handle(data)
          this.#waitingBytes -= sizeOf(data)
          if (this.#waitingBytes < LOW_BYTES) this.#pause(false)
        }
      }
    } catch (error) {
      this.failure = error
      this.#pause(false)
      this.#socket.close()
    }
  }

  #pause(wanted: boolean): void {
    if (this.#isPaused === wanted) return
    this.#isPaused = wanted
    if (wanted) this.#socket.pause?.()
    else this.#socket.resume?.()
  }
}

function sizeOf(data: unknown): number {
  return typeof data === 'string' ? data.length : (data as ArrayBuffer).byteLength
}
