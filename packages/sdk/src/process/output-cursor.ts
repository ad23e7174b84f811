// Gives every byte of a process's output once, across connections that each begin with a replay of the kept output.
//
//   0 ............ replay begins ........ given so far ........ what the process had printed ... live
//                  |<------ skipped ------->|<------------------- given ------------------------->|
export type Channel = 'stdout' | 'stderr'
export type OutputHandler = (channel: Channel, bytes: Uint8Array) => void | Promise<void>

export class OutputCursor {
  /** Bytes that were printed but are not kept any more. */
  droppedBytes = 0
  readonly #give: OutputHandler
  /** Offset of the next byte to give. */
  #position = 0
  /** Offset of the next byte to arrive. */
  #coming = 0

  constructor(give: OutputHandler) {
    this.#give = give
  }

  /** Begins a connection whose output starts at this offset. With `isLiveOnly`, earlier output does not count as dropped. */
  begin(offset: number, options: { isLiveOnly: boolean }): void {
    this.#coming = offset
    if (options.isLiveOnly) this.#position = offset
    this.droppedBytes += Math.max(0, offset - this.#position)
    this.#position = Math.max(this.#position, offset)
  }

  output(channel: Channel, bytes: Uint8Array): void | Promise<void> {
    const known = Math.min(bytes.length, this.#position - this.#coming)
    this.#coming += bytes.length
    if (known === bytes.length) return
    this.#position = this.#coming
    return this.#give(channel, known === 0 ? bytes : bytes.subarray(known))
  }
}
