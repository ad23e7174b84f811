// Gives every byte of a process's output once, across connections that each begin with a replay of its end.
//
//   0 ............ replay begins ........ known so far ........ replay ends = what the process had printed
//                  |<--- held back until its length is known --->|  then live
export type Channel = 'stdout' | 'stderr'
export type OutputHandler = (channel: Channel, bytes: Uint8Array) => void | Promise<void>

export class OutputCursor {
  /** Output was printed that can not be given any more. */
  truncated = false
  readonly #give: OutputHandler
  #position = 0
  #replayEnd = 0
  #held: { channel: Channel; bytes: Uint8Array }[] | undefined

  constructor(give: OutputHandler) {
    this.#give = give
  }

  /** The first connection: its replay is given as it comes. */
  begin(printedBytes: number, options: { truncated: boolean; isLiveOnly: boolean }): void {
    this.truncated = options.truncated
    this.#replayEnd = printedBytes
    if (options.isLiveOnly) this.#position = printedBytes
  }

  beginAgain(printedBytes: number): void {
    this.#held = []
    this.#replayEnd = printedBytes
  }

  output(channel: Channel, bytes: Uint8Array): void | Promise<void> {
    if (this.#held) {
      this.#held.push({ channel, bytes })
      return
    }
    this.#position += bytes.length
    return this.#give(channel, bytes)
  }

  async endReplay(): Promise<void> {
    const held = this.#held ?? []
    this.#held = undefined
    let at = this.#replayEnd - held.reduce((sum, { bytes }) => sum + bytes.length, 0)
    if (held.length > 0 && at > this.#position) this.truncated = true
    for (const { channel, bytes } of held) {
      const known = Math.min(bytes.length, Math.max(0, this.#position - at))
      at += bytes.length
      if (known < bytes.length) await this.#give(channel, bytes.subarray(known))
    }
    this.#position = this.#replayEnd
  }
}
