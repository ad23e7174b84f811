// Where the server is and which key to show it: what the caller says, else ISLET_URL and ISLET_API_KEY, else the socket and the key
// file that a server on this machine made: our own, or root's if we are in its group. Without a socket it is the default address.
// Browsers have neither environment nor files: there the caller must say.
import { DEFAULTS } from '@islet/contract/client'
import { ClientError } from '../errors.ts'
import type { Names } from '../options.ts'
import { environment } from '../platform.ts'
import type { SocketConstructor } from '../transport/socket.ts'
import type { TokenSource } from './credential.ts'
import { dataDirectories, dataDirectory, findKey, findSocket, ROOTS_DIRECTORY } from './local.ts'

export interface ClientOptions {
  /** Default: ISLET_URL, else the socket of a server on this machine (Node only), else http://127.0.0.1:7400. */
  url?: string
  /** Default: ISLET_API_KEY, else a key file of this machine (only for a loopback address; root's only for the default one). */
  apiKey?: string
  /**
   * A sandbox token instead of a key: reaches that sandbox alone, and is renewed before it expires. With an `apiKey` beside
   * it, or as a function that gets one, it is renewed after it expired too.
   */
  token?: TokenSource
  /** Whoever gives this or `WebSocket` reaches the server by address, not by its socket. */
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

type Given = Pick<ClientOptions, 'url' | 'apiKey' | 'token' | 'fetch' | 'WebSocket'>

export interface Settings {
  /** `unix:<path>` when it is a socket. */
  url: string
  socketPath?: string
  apiKey: string | undefined
  /** The file that the key is from. */
  keyPath?: string
}

export const DEFAULT_URL = `http://${DEFAULTS.host}:${DEFAULTS.port}`

export function resolveSettings(options: Given = {}): Settings {
  const { directories, ...place } = placeOf(options)
  // Whoever hands over a token wants that much reach and no more.
  if (options.token !== undefined) return { ...place, apiKey: options.apiKey }
  const apiKey = options.apiKey ?? (environment().ISLET_API_KEY || undefined)
  if (apiKey !== undefined) return { ...place, apiKey }
  const { key, path } = findKey(directories)
  return { ...place, apiKey: key, ...(path && { keyPath: path }) }
}

interface Place {
  url: string
  socketPath?: string
  /** Whose key may go there: none but to this machine. */
  directories: string[]
}

function placeOf(options: Given): Place {
  const named = environment().ISLET_URL
  const url = options.url ?? (named || undefined)
  if (url === undefined) {
    const isPlain = options.fetch === undefined && options.WebSocket === undefined
    const socket = isPlain ? findSocket() : undefined
    if (socket)
      return { url: `unix:${socket.path}`, socketPath: socket.path, directories: [socket.directory] }
    return { url: DEFAULT_URL, directories: dataDirectories() }
  }
  const checked = checkedUrl(url, options.url === undefined ? 'ISLET_URL' : 'url')
  return { url: checked, directories: isLoopback(checked) ? directoriesFor(checked) : [] }
}

/** Another port or loopback address than the default one may lead to another machine: root's key goes there only if its directory was named. */
function directoriesFor(url: string): string[] {
  if (new URL(url).origin === DEFAULT_URL) return dataDirectories()
  const own = dataDirectory()
  return own === undefined ? [] : [own]
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

/** What to do when the server does not take the key, or the lack of one, that `resolveSettings` gave. */
export function keyHint(options: Given): string | undefined {
  if (options.token !== undefined || options.apiKey !== undefined) return undefined
  const { url, directories } = placeOf(options)
  const env = environment()
  const group = `as root: usermod -aG islet ${env.USER || 'NAME'}; then log in again`
  if (env.ISLET_API_KEY) {
    const wrong = `ISLET_API_KEY is not the key of the server at ${url}.`
    if (directories.length === 0) return wrong
    return `${wrong} Without it the key is read in ISLET_DATA_DIR, which members of the group islet may do too (${group}).`
  }
  if (directories.length === 0)
    return `Set ISLET_API_KEY to the key of ${url}; the key of this machine is not sent there.`
  const { path, closed, tried } = findKey(directories)
  if (path)
    return `The key in ${path} is another server's: set ISLET_DATA_DIR to the data directory of the one at ${url}, or ISLET_API_KEY.`
  if (closed)
    return `You may not read ${closed}: become a member of its group (${group}), or set ISLET_API_KEY, or ISLET_DATA_DIR for another server.`
  const rest = tried.includes(`${ROOTS_DIRECTORY}/key`)
    ? `its key may be for members of the group islet (${group}).`
    : `for a server of root that is ${ROOTS_DIRECTORY}, whose key is sent only to ${DEFAULT_URL} by itself, and members of the group islet may read it (${group}).`
  return `There is no key in ${tried.join(' or ')}: set ISLET_API_KEY, or ISLET_DATA_DIR to the data directory of the server; ${rest}`
}

function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}
