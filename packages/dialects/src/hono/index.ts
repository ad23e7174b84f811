// A middleware for Hono that gives every handler one SandboxClient as c.var.sandbox.
import { SandboxClient, type SandboxClientOptions } from '../agentuity/index.ts'

export interface Services {
  sandbox: SandboxClient
}

export interface AgentuityOptions {
  services?: { clients?: { sandbox?: SandboxClient } }
  /** For the client that is made if none is given. */
  sandbox?: SandboxClientOptions
}

/** The part of Hono's context that this needs. */
interface Context {
  set(name: 'sandbox', client: SandboxClient): void
}

export function agentuity(
  options: AgentuityOptions = {},
): (context: Context, next: () => Promise<void>) => Promise<void> {
  const client = options.services?.clients?.sandbox ?? new SandboxClient(options.sandbox)
  return async (context, next) => {
    context.set('sandbox', client)
    await next()
  }
}
