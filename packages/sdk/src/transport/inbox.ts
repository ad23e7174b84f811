import type { Socket } from './socket.ts'

const HIGH_BYTES = 4 * 1024 * 1024
const LOW_BYTES = 1024 * 1024

/** Messages of a socket, handled one after the other; when handling is slow, the socket is paused where it can be. */
export class Inbox {
  failure: unknown
  isEmpty = true
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
    this.isEmpty = false
    this.#waiting.push(data)
    this.#waitingBytes += sizeOf(data)
    if (this.#waitingBytes > HIGH_BYTES) this.#pause(true)
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

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
