// WRITE and TAR_IN: OPENED, then the body's DATA at the guest's pace, END, then OK.

import { type Chunks, releasing } from '../../wire/chunks.ts'
import type { Frame } from '../../wire/frames.ts'
import { decode } from '../decode.ts'
import { Violation } from '../errors.ts'
import { MESSAGE, type OkFields } from '../messages.gen.ts'
import type { Presence } from '../presence.ts'
import { Outflow } from '../streams/outflow.ts'
import { Exchange, type Request } from './request.ts'

export function upload<T>(
  presence: Presence,
  request: Request<'WRITE'> | Request<'TAR_IN'>,
  body: Chunks,
  parse: (ok: OkFields) => T,
): Promise<T> {
  return new Upload(presence, request, body, parse).run()
}

class Upload<T> extends Exchange<T> {
  readonly #body: Chunks
  readonly #parse: (ok: OkFields) => T
  #outflow: Outflow | undefined
  #opened = false
  #sentEnd = false

  constructor(presence: Presence, request: Request, body: Chunks, parse: (ok: OkFields) => T) {
    super(presence, request)
    this.#body = body
    this.#parse = parse
  }

  protected override onMessage(frame: Frame): void {
    if (frame.type === MESSAGE.OPENED && !this.#opened) {
      this.#opened = true
      this.#outflow = new Outflow(this.connection!, this.stream)
      void this.#pump(this.#outflow)
    } else if (frame.type === MESSAGE.WINDOW && this.#outflow) this.#outflow.onWindow(frame)
    else if (frame.type === MESSAGE.OK && this.#sentEnd) {
      const answer = this.#parse(decode('OK', frame.payload))
      this.finish()
      this.resolve(answer)
    } else if (frame.type === MESSAGE.OK) throw new Violation('OK before the end of the data')
    else this.unexpected(frame)
  }

  protected override onFail(): void {
    this.#outflow?.stop()
  }

  async #pump(outflow: Outflow): Promise<void> {
    try {
      const body = this.#body
      for await (const chunk of body) {
        const sent = outflow.send(chunk, releasing(body, chunk))
        if (sent !== true && !(await sent)) return
      }
      if (!this.connection) return
      this.#sentEnd = true
      this.connection.out.send('END', this.stream, {})
    } catch (error) {
      this.cancel(error)
    }
  }
}
