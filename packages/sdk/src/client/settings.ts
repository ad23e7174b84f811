// Finds the URL of the server and the key to send: the caller's options, else ISLET_URL and ISLET_API_KEY, else the socket and key file
// of a server on this machine (our own, or root's if we are in its group), else the default address. Browsers have no environment and
// no files: there the options are needed.
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
  /** Default: ISLET_API_KEY, else a key file of this machine (only for a loopback URL; root's only for the default URL). */
  apiKey?: string
  /**
   * A token instead of a key: gives access to one sandbox only. With an `apiKey` too, or as a function, it is renewed before it expires.
   * Alone it is not: a session token lasts longer.
   */
  token?: TokenSource
  /** With this or `WebSocket` the client uses the URL of the server, not its socket. */
  fetch?: typeof globalThis.fetch
  WebSocket?: SocketConstructor
  /** How many times a safe call is retried. Default: 3. */
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
  /** `unix:<path>` for a socket. */
  url: string
  socketPath?: string
  apiKey: string | undefined
  /** The file that the key was read from. */
  keyPath?: string
}

export const DEFAULT_URL = `http://${DEFAULTS.host}:${DEFAULTS.port}`

export function resolveSettings(options: Given = {}): Settings {
  const { directories, ...place } = placeOf(options)
  // A token was given to limit access: no other key is looked for.
  if (options.token !== undefined) return { ...place, apiKey: options.apiKey }
  const apiKey = options.apiKey ?? (environment().ISLET_API_KEY || undefined)
  if (apiKey !== undefined) return { ...place, apiKey }
  const { key, path } = findKey(directories)
  return { ...place, apiKey: key, ...(path && { keyPath: path }) }
}

interface Place {
  url: string
  socketPath?: string
  /** The data directories whose key may be sent there; none if the URL is another machine. */
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

/** A loopback URL other than the default may be a tunnel to another machine: root's key is sent there only if ISLET_DATA_DIR names its directory. */
function directoriesFor(url: string): string[] {
  if (new URL(url).origin === DEFAULT_URL) return dataDirectories()
  const own = dataDirectory()
  return own === undefined ? [] : [own]
}

/** Without trailing slashes. `name` is the option or variable that was set, for the error. */
function checkedUrl(given: string, name: string): string {
  const url = String(given).replace(/\/+$/, '')
  if (/^https?:\/\//i.test(url) && URL.canParse(url)) return url
  // The URL may hold a password.
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

/** The hint for a server that refuses the key of `resolveSettings`, or for a missing key. */
export function keyHint(options: Given): string | undefined {
  if (options.token !== undefined || options.apiKey !== undefined) return undefined
  const { url, directories } = placeOf(options)
  const env = environment()
  const group = `as root: usermod -aG islet ${env.USER || 'NAME'}; then log in again`
  if (env.ISLET_API_KEY) {
    const wrong = `ISLET_API_KEY is not the key of the server at ${url}.`
    if (directories.length === 0) return wrong
    return `${wrong} If you unset it, the key file in ISLET_DATA_DIR is used, which members of the group islet may read (${group}).`
  }
  if (directories.length === 0)
    return `Set ISLET_API_KEY to the key of ${url}; the key file of this machine is not used for it.`
  const { path, closed, tried } = findKey(directories)
  if (path)
    return `The key in ${path} belongs to another server: set ISLET_DATA_DIR to the data directory of the server at ${url}, or set ISLET_API_KEY.`
  if (closed)
    return `You may not read ${closed}: join its group (${group}), or set ISLET_API_KEY, or ISLET_DATA_DIR for another server.`
  const rest = tried.includes(`${ROOTS_DIRECTORY}/key`)
    ? `members of the group islet may be able to read its key (${group}).`
    : `for root's server that is ${ROOTS_DIRECTORY}, whose key is sent by default only to ${DEFAULT_URL}; members of the group islet may read it (${group}).`
  return `There is no key in ${tried.join(' or ')}: set ISLET_API_KEY, or ISLET_DATA_DIR to the data directory of the server; ${rest}`
}

function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}
