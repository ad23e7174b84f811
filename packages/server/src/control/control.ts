// What exists: making, finding, changing and removing sandboxes. sandboxes.ts implements it; api/ serves it.
import type {
  CreateSandboxParsed,
  ListSandboxesParsed,
  Sandbox,
  SandboxPage,
  SandboxUsage,
  ServerInfo,
  UpdateSandboxParsed,
} from '@islet/contract'

export interface Control {
  /** Answers once the sandbox runs. The same `idempotencyKey` with the same input answers with the same sandbox. */
  create(
    input: CreateSandboxParsed,
    options?: { idempotencyKey?: string; signal?: AbortSignal },
  ): Promise<Sandbox>
  get(id: string): Sandbox
  list(query: ListSandboxesParsed): SandboxPage
  update(id: string, patch: UpdateSandboxParsed): Promise<Sandbox>
  /** Kills everything in it, removes all it holds, keeps the record as `stopped`. Of a stopped one: answers again. */
  delete(id: string): Promise<Sandbox>
  usage(id: string): Promise<SandboxUsage>
  info(): ServerInfo
  /** Undefined: can make sandboxes. */
  unready(): string | undefined
}
