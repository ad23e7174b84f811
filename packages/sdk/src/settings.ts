// Where the server is and which key to show it: what the caller says, else ISLET_URL and ISLET_API_KEY, else the key
// file that a server on this machine wrote: our own, or at the default address that of root's server if we are in its group.
// Browsers have neither environment nor files: there the caller must say.
import { DEFAULTS } from '@islet/contract/client'
import type { TokenSource } from './credential.ts'
import { ClientError } from './errors.ts'
import type { Names } from './options.ts'
import type { SocketConstructor } from './transport/socket.ts'

export interface ClientOptions {
  /** Default: ISLET_URL, else http://127.0.0.1:7400. */
  url?: string
  /** Default: ISLET_API_KEY, else a key file of this machine (only for a loopback address; root's only for the default one). */
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

export const CLIENT: Names<ClientOptions> = {
  url: 1,
  apiKey: 1,
  token: 1,
  fetch: 1,
  WebSocket: 1,
  retries: 1,
}

export interface Settings {
  url: string
  apiKey: string | undefined
}

const ROOTS_DIRECTORY = '/var/lib/islet'

export const DEFAULT_URL = `http://${DEFAULTS.host}:${DEFAULTS.port}`

export function resolveSettings(options: Pick<ClientOptions, 'url' | 'apiKey' | 'token'> = {}): Settings {
  const env = environment()
  const url =
    options.url === undefined
      ? checkedUrl(env.ISLET_URL || DEFAULT_URL, 'ISLET_URL')
      : checkedUrl(options.url, 'url')
  // Whoever hands over a token wants that much reach and no more.
  if (options.token !== undefined) return { url, apiKey: options.apiKey }
  const apiKey = options.apiKey ?? (env.ISLET_API_KEY || undefined)
  // A key file is for an address of this machine.
  return { url, apiKey: apiKey ?? (isLoopback(url) ? findKey(url).key : undefined) }
}

/** Without the slash at its end. `name` is what the caller set, for the error. */
function checkedUrl(given: string, name: string): string {
  const url = String(given).replace(/\/+$/, '')
  if (/^https?:\/\//i.test(url) && URL.canParse(url)) return url
  // It may hold a password.
  const shown = url.replace(/[^/@]*@/, '…@').slice(0, 200)
  const schemeless = !/^[a-z][a-z0-9+.-]*:\/\//i.test(url) && URL.canParse(`http://${url}`)
  const meant = `${schemeless && !isLoopback(`http://${url}`) ? 'https' : 'http'}://${shown}`
  throw new ClientError(
    'invalid_url',
    schemeless
      ? `${name} is '${shown}', which lacks http:// or https://.`
      : `${name} is '${shown}', which is not an http or https URL.`,
    schemeless ? { hint: `Set ${name} to ${meant}.` } : {},
  )
}

/** ISLET_DATA_DIR, else /var/lib/islet as root, else the user's data directory. Undefined where there are no files. */
export function dataDirectory(): string | undefined {
  const env = environment()
  if (env.ISLET_DATA_DIR) return env.ISLET_DATA_DIR
  if (nodeProcess()?.getuid?.() === 0) return ROOTS_DIRECTORY
  if (env.XDG_DATA_HOME?.startsWith('/')) return `${env.XDG_DATA_HOME}/islet`
  return env.HOME ? `${env.HOME}/.local/share/islet` : undefined
}

/** What to do when the server does not take the key, or the lack of one, that `resolveSettings` gave. */
export function keyHint(options: Pick<ClientOptions, 'url' | 'apiKey' | 'token'>): string | undefined {
  if (options.token !== undefined || options.apiKey !== undefined) return undefined
  const { url } = resolveSettings(options)
  const env = environment()
  const group = `as root: usermod -aG islet ${env.USER || 'NAME'}; then log in again`
  if (env.ISLET_API_KEY) {
    const wrong = `ISLET_API_KEY is not the key of the server at ${url}.`
    if (!isLoopback(url)) return wrong
    return `${wrong} Without it the key is read in ISLET_DATA_DIR, which members of the group islet may do too (${group}).`
  }
  if (!isLoopback(url))
    return `Set ISLET_API_KEY to the key of ${url}; the key of this machine is not sent there.`
  const { path, closed, tried } = findKey(url)
  if (path)
    return `The key in ${path} is another server's: set ISLET_DATA_DIR to the data directory of the one at ${url}, or ISLET_API_KEY.`
  if (closed)
    return `You may not read ${closed}: become a member of its group (${group}), or set ISLET_API_KEY, or ISLET_DATA_DIR for another server.`
  const rest = tried.includes(`${ROOTS_DIRECTORY}/key`)
    ? `its key may be for members of the group islet (${group}).`
    : `for a server of root that is ${ROOTS_DIRECTORY}, whose key is sent only to ${DEFAULT_URL} by itself, and members of the group islet may read it (${group}).`
  return `There is no key in ${tried.join(' or ')}: set ISLET_API_KEY, or ISLET_DATA_DIR to the data directory of the server; ${rest}`
}

interface FoundKey {
  key?: string
  /** Where the key was. */
  path?: string
  /** A file that is there, as far as can be told, and not ours to read. */
  closed?: string
  tried: string[]
}

function findKey(url: string): FoundKey {
  const own = dataDirectory()
  const fs = nodeProcess()?.getBuiltinModule?.('node:fs')
  // Whoever names a data directory means that server and no other. Any user may listen at another port or loopback address, or have a
  // tunnel there that leads to another machine: root's key goes there only when its directory was named.
  const isRoots = !environment().ISLET_DATA_DIR && new URL(url).origin === DEFAULT_URL
  const directories = isRoots ? [own, ROOTS_DIRECTORY] : [own]
  const tried = directories.flatMap((directory) => (directory ? [`${directory}/key`] : []))
  const found: FoundKey = { tried: [...new Set(tried)] }
  for (const path of fs ? found.tried : []) {
    try {
      const key = fs!.readFileSync(path, 'utf8').trim()
      if (key) return { ...found, key, path }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EACCES') found.closed = path
    }
  }
  return found
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
