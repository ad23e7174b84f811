import { type Names, refuseUnknown, type Sandbox } from '@islet/sdk'
import { failing, quiet } from './failed.ts'

export interface PtyOpts {
  /** Default: 80. */
  cols?: number
  /** Default: 24. */
  rows?: number
  onOutput?: (data: Uint8Array) => void
}

export interface PtySession {
  readonly sessionId: string
  /** Awaiting it is optional. */
  send(data: string | Uint8Array): Promise<void>
  /** Ends the terminal. */
  close(): Promise<void>
}

const CREATE: Names<PtyOpts> = { cols: 1, rows: 1, onOutput: 1 }

export class Pty {
  readonly #native: Sandbox

  constructor(native: Sandbox) {
    this.#native = native
  }

  async create(opts: PtyOpts = {}): Promise<PtySession> {
    refuseUnknown('sandbox.pty.create', opts, CREATE)
    const { cols = 80, rows = 24, onOutput } = opts
    const created = this.#native.pty.create({ cols, rows, onOutput })
    const session = await failing('Failed to create PTY', created)
    return {
      sessionId: session.sessionId,
      send: (data) => session.send(data),
      close: () => quiet(session.close()),
    }
  }
}
