import { type SandboxEvent, sandboxEvent } from '@islet/contract'
import type { TestApi } from './server.ts'

/** Follows the events of a sandbox and writes down what it sees. */
export class EventClient {
  readonly events: SandboxEvent[] = []
  /** Frames and comments as they came. */
  text = ''
  readonly ended: Promise<'ended' | 'broken'>
  readonly #controller = new AbortController()

  static async open(api: TestApi, id: string, query = '', headers: Record<string, string> = {}) {
    const controller = new AbortController()
    const response = await api.call('GET', `/v1/sandboxes/${id}/events?follow=true${query}`, undefined, {
      headers,
      signal: controller.signal,
    })
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
    return new EventClient(response, controller)
  }

  constructor(response: Response, controller: AbortController) {
    this.#controller = controller
    this.ended = this.#read(response)
  }

  get types(): string[] {
    return this.events.map(({ type }) => type)
  }

  get ids(): number[] {
    return this.events.map(({ id }) => Number(id))
  }

  async close(): Promise<void> {
    this.#controller.abort()
    await this.ended
  }

  async #read(response: Response): Promise<'ended' | 'broken'> {
    let rest = ''
    try {
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
        this.text += chunk
        const parts = (rest + chunk).split('\n\n')
        rest = parts.pop()!
        for (const part of parts) this.#frame(part)
      }
      return 'ended'
    } catch {
      return 'broken'
    }
  }

  #frame(frame: string): void {
    const [, id, type, data] = /^id: (\d+)\nevent: ([\w.-]+)\ndata: (.*)$/.exec(frame) ?? []
    if (data === undefined) return
    const event = sandboxEvent.parse(JSON.parse(data))
    if (event.id !== id || event.type !== type) throw new Error(`the frame differs from its event: ${frame}`)
    this.events.push(event)
  }
}
