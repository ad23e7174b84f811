// Which platform runs this code: Node, Bun, Deno or a browser.

/** Node, Bun and Deno have `process`; a bundler's shim for browsers lacks `getBuiltinModule`. */
export function nodeProcess(): Partial<NodeJS.Process> | undefined {
  return (globalThis as { process?: Partial<NodeJS.Process> }).process
}

/** Bun and Deno look like Node, but their HTTP client is not faster than fetch and their WebSocket cannot use a socket file. */
export function isNode(): boolean {
  const { node, bun, deno } = (nodeProcess()?.versions ?? {}) as Record<string, string | undefined>
  return node !== undefined && bun === undefined && deno === undefined
}

export function environment(): Record<string, string | undefined> {
  try {
    return nodeProcess()?.env ?? {}
  } catch {
    return {} // Deno without --allow-env
  }
}

export function ownUid(): number | undefined {
  try {
    return nodeProcess()?.getuid?.()
  } catch {
    return undefined // Deno without --allow-sys
  }
}
