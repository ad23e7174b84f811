import { LOGIN_SHELL } from '@islet/contract/client'
import { SandboxPart } from '../client/part.ts'
import { hasCode } from '../errors.ts'
import { type Abortable, guard } from '../options.ts'
import { toFiles } from '../transport/files.ts'
import { type Command, SPAWN, type SpawnOptions } from './exec.ts'
import { checkedSize, Session } from './session.ts'

interface PtyHandlers {
  onOutput?(data: Uint8Array): void | Promise<void>
  onExit?(exitCode: number): void
}

export interface PtyOptions extends SpawnOptions, PtyHandlers {
  /** Default: 80. */
  cols?: number
  /** Default: 24. */
  rows?: number
  /** Default: the user's login shell; bash if the login shell is a plain sh. */
  command?: Command
}

/** Processes in a terminal. */
export class Pty extends SandboxPart {
  async create(options: PtyOptions = {}): Promise<PtySession> {
    const {
      cols = 80,
      rows = 24,
      command = LOGIN_SHELL,
      env,
      onOutput,
      onExit,
      signal,
      files,
      ...rest
    } = options
    const { id } = await this.client.call('startProcess', {
      params: this.params,
      body: {
        command,
        ...rest,
        env: { TERM: 'xterm-256color', ...env },
        terminal: { cols, rows },
        hold: true,
        files: await toFiles(files, signal),
      },
      signal,
    })
    return this.attach(id, { onOutput, onExit, signal })
  }

  /** Another client of a running terminal. */
  async attach(processId: string, options: PtyHandlers & Abortable = {}): Promise<PtySession> {
    const { onOutput, onExit, signal } = options
    const handlers = {
      onOutput: (_: string, bytes: Uint8Array) => onOutput?.(bytes),
      onExit: ({ exitCode }: { exitCode: number }) => onExit?.(exitCode),
    }
    return PtySession.open(this.client, this.params.id, processId, handlers, { signal })
  }
}

export class PtySession extends Session {
  /** Types into the terminal. Resolves when there is room for more. Code `invalid_state` once its shell has ended. */
  send(data: string | Uint8Array): Promise<void> {
    return this.write(data)
  }

  resize(cols: number, rows: number): void {
    this.tell({ type: 'resize', ...checkedSize(cols, rows) })
  }

  /** Leaves the terminal running. */
  detach(): void {
    this.leave()
  }

  /** Ends the terminal, as closing a terminal window does. Does nothing if it has ended. */
  async close(): Promise<void> {
    this.leave()
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
