// The API on a unix socket in the data directory, for clients of this machine: only who may open the file reaches it, and nobody else
// can answer there, so a client can send the key without asking who listens. The key is wanted here as everywhere.
//
//   <data>/islet.sock    0600, or 0660 with the group of the key (start/key-group.ts)
import { chmodSync, chownSync, closeSync, constants, openSync, renameSync, rmSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { basename, dirname, join } from 'node:path'
import { DEFAULTS, LIMITS } from '@islet/contract'
import { Connections } from '../../listen/connections.ts'
import type { Api } from '../api.ts'
import { type Served, serveApi } from './serve.ts'

interface LocalOptions {
  dataDir: string
  /** Members of this group may connect. */
  gid: number | undefined
  /** Where the server listens: callers that come this way know no name for it. */
  url: string
  /** Counted apart from those of the port, so that nobody there takes a place from them. */
  maxConnections: number
}

interface LocalSocket {
  path: string
  close: Served['close']
}

/** Takes the place of what a killed server left there. */
export async function serveLocally(api: Api, options: LocalOptions): Promise<LocalSocket> {
  const { dataDir, gid, url } = options
  const connections = new Connections({ max: options.maxConnections })
  const path = join(dataDir, DEFAULTS.socketName)
  const temporary = join(dataDir, `.${DEFAULTS.socketName}.new`)
  rmSync(temporary, { force: true })
  const served = await bound(temporary, (socketPath) =>
    serveApi(asNamed(api, hostOf(url)), { socketPath, connections }),
  )
  try {
    if (gid !== undefined) chownSync(temporary, -1, gid)
    chmodSync(temporary, gid === undefined ? 0o600 : 0o660)
    renameSync(temporary, path)
  } catch (error) {
    await served.close()
    throw error
  } finally {
    rmSync(temporary, { force: true })
  }
  let isThere = true
  return {
    path,
    close: (options) => {
      if (isThere) rmSync(path, { force: true })
      isThere = false
      return served.close(options)
    },
  }
}

/** The kernel takes no path that is longer; through a descriptor of its directory every path is short. */
async function bound(path: string, bind: (path: string) => Promise<Served>): Promise<Served> {
  if (Buffer.byteLength(path) <= LIMITS.socketPathBytes) return bind(path)
  const directory = openSync(dirname(path), constants.O_DIRECTORY)
  try {
    return await bind(`/proc/self/fd/${directory}/${basename(path)}`)
  } finally {
    closeSync(directory)
  }
}

function hostOf(url: string): string {
  const { hostname, port } = new URL(url)
  // Nobody calls the address that means all of this machine's.
  const name = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' }[hostname] ?? hostname
  return `${name}:${port}`
}

/** URLs in answers begin with the Host of the request. */
function asNamed(api: Api, host: string): Api {
  const named = (incoming: IncomingMessage): IncomingMessage => {
    incoming.headers.host = host
    return incoming
  }
  return {
    ...api,
    listener: (incoming, outgoing) => api.listener(named(incoming), outgoing),
    isUpgrade: (incoming) => api.isUpgrade(named(incoming)),
    attachWebSockets: (server) => {
      server.on('upgrade', named)
      api.attachWebSockets(server)
    },
  }
}
