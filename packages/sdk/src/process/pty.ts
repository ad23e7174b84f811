import { LOGIN_SHELL } from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { hasCode } from '../errors.ts'
import { guard } from '../options.ts'
import { type Command, SPAWN, type SpawnOptions } from './exec.ts'
import { ProcessSession } from './process-session.ts'
import { Session } from './session.ts'

export interface PtyOptions extends SpawnOptions {
  /** Default: 80. */
  cols?: number
  /** Default: 24. */
  rows?: number
  /** Default: the user's login shell; bash where that is a plain sh. */
  command?: Command
  onOutput?(data: Uint8Array): void | Promise<void>
  onExit?(exitCode: number): void
}

/** Terminals of one sandbox. */
export class Pty {
  readonly #client: Client
  readonly #sandboxId: string

  constructor(client: Client, sandboxId: string) {
    this.#client = client
    this.#sandboxId = sandboxId
  }

  async create(options: PtyOptions = {}): Promise<PtySession> {
    const { cols = 80, rows = 24, command = LOGIN_SHELL, cwd, env, user, timeout, signal } = options
    const { maxRunAfterDisconnect, keepAwake, keepOutput } = options
    const process = await this.#client.call('startProcess', {
      params: { id: this.#sandboxId },
      body: {
        command,
        cwd,
        env: { TERM: 'xterm-256color', ...env },
        user,
        timeout,
        maxRunAfterDisconnect,
        keepAwake,
        keepOutput,
        terminal: { cols, rows },
        hold: true,
      },
      signal,
    })
    const { onOutput, onExit } = options
    return this.attach(process.id, { onOutput, onExit, signal })
  }

  /** Another client of a terminal that runs. */
  async attach(
    processId: string,
    options: Pick<PtyOptions, 'onOutput' | 'onExit' | 'signal'> = {},
  ): Promise<PtySession> {
    const { onOutput, onExit, signal } = options
    const session = await Session.open(
      this.#client,
      this.#sandboxId,
      processId,
      {
        onOutput: (_, bytes) => onOutput?.(bytes),
        onExit: (result) => onExit?.(result.exitCode),
      },
      { signal },
    )
    const kill = async (name?: string | number): Promise<void> => {
      const params = { id: this.#sandboxId, pid: processId }
      await this.#client.call('signalProcess', { params, body: { signal: name } })
    }
    return new PtySession(session, kill)
  }
}

export class PtySession extends ProcessSession {
  /** Types into the terminal. Resolves when there is room for more. Code `invalid_state` once its shell has ended. */
  send(data: string | Uint8Array): Promise<void> {
    return this.session.sendStdin(data)
  }

  resize(cols: number, rows: number): void {
    this.session.resize(cols, rows)
  }

  /** Leaves the terminal running. */
  detach(): void {
    this.session.close()
  }

  /** Ends the terminal, as closing a terminal window does. Of one that has ended: does nothing. */
  async close(): Promise<void> {
    this.session.close()
    try {
      await this.kill('SIGHUP')
    } catch (error) {
      if (!hasCode(error, 'invalid_state', 'process_not_found', 'sandbox_not_found')) throw error
    }
  }
}

const ATTACH = { onOutput: 1, onExit: 1, signal: 1 } as const

guard(Pty.prototype, 'sandbox.pty', {
  create: [{ ...SPAWN, ...ATTACH, cols: 1, rows: 1, command: 1 }],
  attach: [null, ATTACH],
})
