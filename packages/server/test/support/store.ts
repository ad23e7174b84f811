// The store's routes of one sandbox, as plain calls.
import type { TestApi } from './server.ts'

export interface Answered {
  status: number
  body: Record<string, unknown>
}

export class StoreCalls {
  readonly path: string
  readonly #api: TestApi

  constructor(api: TestApi, sandboxId: string) {
    this.#api = api
    this.path = `/v1/sandboxes/${sandboxId}/store`
  }

  at(key: string): string {
    return `${this.path}/${encodeURIComponent(key)}`
  }

  set(key: string, body: unknown): Promise<Answered> {
    return answered(this.#api.call('PUT', this.at(key), body))
  }

  /** A body as it is written here. */
  setText(key: string, body: string): Promise<Answered> {
    const headers = { 'Content-Type': 'application/json' }
    return answered(this.#api.call('PUT', this.at(key), body, { headers }))
  }

  get(key: string): Promise<Answered> {
    return answered(this.#api.call('GET', this.at(key)))
  }

  remove(key: string): Promise<Answered> {
    return answered(this.#api.call('DELETE', this.at(key)))
  }

  list(query = ''): Promise<Answered> {
    return answered(this.#api.call('GET', this.path + query))
  }

  batch(operations: unknown): Promise<Answered> {
    return answered(this.#api.call('POST', `${this.path}/batch`, { operations }))
  }
}

export async function answered(response: Promise<Response>): Promise<Answered> {
  const { status } = await response
  return { status, body: (await (await response).json()) as Answered['body'] }
}
