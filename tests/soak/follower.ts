// Follows the history of a sandbox as a stream, across kills of the server, and must miss nothing.
import { Refused } from '../faults/state-world.ts'
import type { World } from './world.ts'

export class Follower {
  /** The ids of the events that it received. */
  readonly ids: string[] = []
  /** Resolves when there is nothing more to be told. */
  readonly over: Promise<void>
  readonly #world: World
  readonly #path: string

  constructor(world: World, sandboxId: string) {
    this.#world = world
    this.#path = `/v1/sandboxes/${sandboxId}/events?follow=true`
    this.over = this.#follow()
    // The client that deletes the sandbox waits for this.
    this.over.catch(() => {})
  }

  async #follow(): Promise<void> {
    for (;;) {
      try {
        if (await this.#isTold()) return
      } catch (error) {
        this.#world.signal.throwIfAborted()
        if (error instanceof Refused) {
          if (this.#world.excuse(error.code, Date.now()) === undefined) throw error
        } else if (!this.#world.wasDown(Date.now()))
          throw new Error(`${this.#path} broke off, and nobody had killed the server`, { cause: error })
      }
      await this.#world.up()
    }
  }

  /** One stream, to its end. Answers whether there is nothing more. */
  async #isTold(): Promise<boolean> {
    const last = this.ids.at(-1)
    const headers: Record<string, string> = last === undefined ? {} : { 'Last-Event-ID': last }
    const answer = await this.#world.server.fetch(this.#path, { headers, signal: this.#world.signal })
    if (answer.status === 204) return true
    if (!answer.ok) throw new Refused((await answer.json()) as never)
    let rest = ''
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
      const frames = (rest + chunk).split('\n\n')
      rest = frames.pop()!
      for (const frame of frames) {
        const id = /^id: (\d+)$/m.exec(frame)?.[1]
        if (id !== undefined) this.ids.push(id)
      }
    }
    return false
  }
}
