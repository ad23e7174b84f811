// The API on a unix socket in the data directory, for clients on this machine. File permissions decide who can connect, and no other
// program can listen there, so a client can safely send the key. The key is required here too.
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
  /** The server's URL on TCP: URLs in answers begin with it. */
  url: string
  /** Counted separately from the port's, so that clients there cannot take all places. */
  maxConnections: number
}

interface LocalSocket {
  path: string
  close: Served['close']
}

/** Replaces the socket that a killed server left. */
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

/** The kernel limits the length of a socket path; through a descriptor of the directory every path is short. */
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
  // The wildcard address cannot be called.
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
