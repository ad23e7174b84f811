import { type CreateOverlay, IsletError, type OverlayInfo } from '@islet/contract/client'
import { SandboxPart } from '../client/part.ts'
import { ABORTABLE, type Abortable, guard } from '../options.ts'
import { sleep } from '../transport/retry.ts'

/** How often, and for how long, to ask whether an overlay is complete. */
export interface WaitOptions extends Abortable {
  /** Default: 60. */
  maxRetries?: number
  /** Default: 500. */
  initialDelayMs?: number
  /** Default: 5000. */
  maxDelayMs?: number
  /** Each delay is this many times the one before. Default: 1.5. */
  backoffFactor?: number
}

export interface OverlayOptions extends CreateOverlay, Abortable {
  /** Resolve when the copying has ended. Default: false. */
  waitForCompletion?: boolean | WaitOptions
}

/** Template directories that are copied in the background. */
export class Overlays extends SandboxPart {
  async create(options: OverlayOptions): Promise<OverlayInfo> {
    const { waitForCompletion, signal, ...body } = options
    const overlay = await this.client.call('createOverlay', { params: this.params, body, signal })
    if (!waitForCompletion) return overlay
    const wait = waitForCompletion === true ? {} : waitForCompletion
    return this.waitForCompletion(overlay.id, { signal, ...wait })
  }

  async list(options: Abortable = {}): Promise<OverlayInfo[]> {
    return (await this.client.call('listOverlays', { params: this.params, ...options })).overlays
  }

  retrieve(id: string, options: Abortable = {}): Promise<OverlayInfo> {
    return this.client.call('getOverlay', { params: { ...this.params, oid: id }, ...options })
  }

  /** Resolves when `copyStatus` is complete or failed. Code `timeout` if it is neither after all retries. */
  async waitForCompletion(id: string, options: WaitOptions = {}): Promise<OverlayInfo> {
    const { maxRetries = 60, initialDelayMs = 500, maxDelayMs = 5000, backoffFactor = 1.5, signal } = options
    let delayMs = initialDelayMs
    for (let retry = 0; ; retry++) {
      const overlay = await this.retrieve(id, { signal })
      if (overlay.copyStatus === 'complete' || overlay.copyStatus === 'failed') return overlay
      if (retry >= maxRetries) {
        const message = `Overlay ${id} is still ${overlay.copyStatus} after ${maxRetries} retries.`
        const hint = 'The copying continues: wait again, or with more retries.'
        throw new IsletError('timeout', message, { hint, details: { overlay } })
      }
      await sleep(Math.min(delayMs, maxDelayMs), signal)
      delayMs *= backoffFactor
    }
  }

  /** Stops the copying and removes what was copied. */
  async destroy(id: string, options: Abortable = {}): Promise<void> {
    await this.client.call('deleteOverlay', { params: { ...this.params, oid: id }, ...options })
  }
}

const WAIT = { maxRetries: 1, initialDelayMs: 1, maxDelayMs: 1, backoffFactor: 1, signal: 1 } as const

guard(Overlays.prototype, 'sandbox.files.overlay', {
  create: [{ source: 1, target: 1, ignore: 1, strategy: 1, waitForCompletion: 1, signal: 1 }],
  list: [ABORTABLE],
  retrieve: [null, ABORTABLE],
  waitForCompletion: [null, WAIT],
  destroy: [null, ABORTABLE],
})
