import {
  type CreateSandboxParsed,
  DEFAULTS,
  IsletError,
  type ListSandboxesParsed,
  newId,
  type Sandbox,
  type SandboxPage,
  type SandboxUsage,
  type ServerInfo,
  type UpdateSandboxParsed,
} from '@islet/contract'
import type { Control } from '../../control/control.ts'

export class MemoryControl implements Control {
  readonly sandboxes = new Map<string, Sandbox>()
  readonly keys: (string | undefined)[] = []
  lastQuery: ListSandboxesParsed | undefined
  notReady: string | undefined

  async create(input: CreateSandboxParsed, options: { idempotencyKey?: string } = {}): Promise<Sandbox> {
    this.keys.push(options.idempotencyKey)
    const now = new Date().toISOString()
    const sandbox: Sandbox = {
      id: newId('sandbox'),
      name: input.name ?? null,
      description: input.description ?? null,
      status: 'running',
      reason: null,
      runtime: input.runtime ?? DEFAULTS.runtime,
      image: 'img-0',
      engine: 'memory',
      isolation: 'none',
      metadata: input.metadata ?? {},
      project: input.project ?? null,
      env: input.env ?? {},
      resources: {
        memoryBytes: input.resources?.memory ?? DEFAULTS.memoryBytes,
        cpuMillis: 1000,
        diskBytes: 1,
        pids: 16,
      },
      network: input.network ?? { enabled: false },
      user: input.user ?? 'user',
      workdir: input.workdir ?? '/home/user',
      createdAt: now,
      updatedAt: now,
      stoppedAt: null,
    }
    this.sandboxes.set(sandbox.id, sandbox)
    return sandbox
  }

  get(id: string): Sandbox {
    const sandbox = this.sandboxes.get(id)
    if (!sandbox) throw new IsletError('sandbox_not_found')
    return sandbox
  }

  list(query: ListSandboxesParsed): SandboxPage {
    this.lastQuery = query
    const sandboxes = [...this.sandboxes.values()].slice(0, query.limit ?? 100)
    return { sandboxes, total: this.sandboxes.size }
  }

  async update(id: string, patch: UpdateSandboxParsed): Promise<Sandbox> {
    const sandbox = this.get(id)
    if (patch.name !== undefined) sandbox.name = patch.name
    return sandbox
  }

  async delete(id: string): Promise<Sandbox> {
    const sandbox = this.get(id)
    sandbox.status = 'stopped'
    return sandbox
  }

  async usage(id: string): Promise<SandboxUsage> {
    this.get(id)
    return { memoryBytes: 1, memoryPeakBytes: 1, cpuUsec: 1, pids: 1, oomKills: 0, diskBytes: 1 }
  }

  info(): ServerInfo {
    return {
      version: '0.0.0',
      engine: 'memory',
      isolation: 'none',
      capabilities: { network: { missing: 'there is none in memory' }, limits: true },
      storage: { clone: 'copy', diskLimit: false },
      sandboxes: this.sandboxes.size,
      startedAt: new Date(0).toISOString(),
    }
  }

  unready(): string | undefined {
    return this.notReady
  }
}
