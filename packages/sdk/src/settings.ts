// Where the server is and which key to show it: what the caller says, else ISLET_URL and ISLET_API_KEY, else the key
// file that a server on this machine wrote. Browsers have neither environment nor files: there the caller must say.
import { DEFAULTS } from '@islet/contract'
import type { TokenSource } from './credential.ts'
import type { SocketConstructor } from './transport/socket.ts'

export interface ClientOptions {
  /** Default: ISLET_URL, else http://127.0.0.1:7400. */
  url?: string
  /** Default: ISLET_API_KEY, else the key file of this machine (only for a server on this machine). */
  apiKey?: string
  /**
   * A sandbox token instead of a key: reaches that sandbox alone, and is renewed before it expires. With an `apiKey` beside
   * it, or as a function that gets one, it is renewed after it expired too.
   */
  token?: TokenSource
  fetch?: typeof globalThis.fetch
  WebSocket?: SocketConstructor
  /** How often a safe call is tried again. Default: 3. */
  retries?: number
}

export interface Settings {
  url: string
  apiKey: string | undefined
}

export const DEFAULT_URL = `http://${DEFAULTS.host}:${DEFAULTS.port}`

export function resolveSettings(options: Pick<ClientOptions, 'url' | 'apiKey' | 'token'> = {}): Settings {
  const env = environment()
  const url = (options.url ?? (env.ISLET_URL || DEFAULT_URL)).replace(/\/+$/, '')
  // Whoever hands over a token wants that much reach and no more.
  if (options.token !== undefined) return { url, apiKey: options.apiKey }
  const apiKey = options.apiKey ?? (env.ISLET_API_KEY || undefined)
  // The key of this machine is never shown to another one.
  return { url, apiKey: apiKey ?? (isLoopback(url) ? readKeyFile() : undefined) }
}

/** ISLET_DATA_DIR, else /var/lib/islet as root, else the user's data directory. Undefined where there are no files. */
export function dataDirectory(): string | undefined {
  const env = environment()
  if (env.ISLET_DATA_DIR) return env.ISLET_DATA_DIR
  if (nodeProcess()?.getuid?.() === 0) return '/var/lib/islet'
  if (env.XDG_DATA_HOME?.startsWith('/')) return `${env.XDG_DATA_HOME}/islet`
  return env.HOME ? `${env.HOME}/.local/share/islet` : undefined
}

function readKeyFile(): string | undefined {
  const directory = dataDirectory()
  const fs = nodeProcess()?.getBuiltinModule?.('node:fs')
  if (!directory || !fs) return undefined
  try {
    return fs.readFileSync(`${directory}/key`, 'utf8').trim() || undefined
  } catch {
    return undefined // no server on this machine yet, or not ours to read: the server will say unauthorized
  }
}

function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}

/** Node, Bun and Deno have it; a bundler's shim in a browser lacks getBuiltinModule. */
function nodeProcess(): Partial<NodeJS.Process> | undefined {
  return (globalThis as { process?: Partial<NodeJS.Process> }).process
}

function environment(): Record<string, string | undefined> {
  try {
    return nodeProcess()?.env ?? {}
  } catch {
    return {} // Deno without --allow-env
  }
}
