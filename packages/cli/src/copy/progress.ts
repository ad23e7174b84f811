import { formatBytes } from '../format.ts'
import { clearStatus, showStatus } from '../output.ts'
import { clean } from '../table.ts'

const REDRAW_MS = 100

/** A line on the terminal that says how far it is; nothing in a pipe. */
export class Progress implements Disposable {
  readonly #label: string
  readonly #total: number | undefined
  #bytes = 0
  #drawnAt = 0

  constructor(label: string, total?: number) {
    this.#label = clean(label)
    this.#total = total
  }

  add(bytes: number): void {
    this.#bytes += bytes
    if (Date.now() - this.#drawnAt < REDRAW_MS) return
    this.#drawnAt = Date.now()
    const total = this.#total
    const share = total ? ` of ${formatBytes(total)} (${Math.floor((100 * this.#bytes) / total)}%)` : ''
    showStatus(`${this.#label} ${formatBytes(this.#bytes)}${share}`)
  }

  async *count(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const part of source) {
      this.add(part.byteLength)
      yield part
    }
  }

  [Symbol.dispose](): void {
    clearStatus()
  }
}
