// Connections through the socket file of a server on this machine, in Node.
import type { Socket as Connection } from 'node:net'
import { LIMITS } from '@islet/contract/client'
import { nodeProcess } from '../platform.ts'

/** With an error there is no connection. */
type Done = (error: Error | null, connection: Connection) => void

/** Looks a name up in a directory that need not be readable. */
const O_PATH = 0o10000000
const RETRY_MS = 20
const GIVE_UP_MS = 10_000

/** A server that has too many connections waiting refuses more, where over TCP they would wait: so they wait here. */
export function connectLocally(path: string, options: { timeout?: number }, done: Done): undefined {
  const deadline = Date.now() + GIVE_UP_MS
  attempt()
  return undefined

  function attempt(): void {
    const socket = connect(path, options)
    const onError = (error: NodeJS.ErrnoException): void => {
      if (error.code === 'EAGAIN' && Date.now() < deadline) setTimeout(attempt, RETRY_MS * Math.random())
      else done(error, socket)
    }
    socket.once('error', onError)
    socket.once('connect', () => {
      socket.off('error', onError)
      done(null, socket)
    })
  }
}

/** The kernel takes no path that is longer; through a descriptor of its directory every path is short. */
function connect(path: string, options: { timeout?: number }): Connection {
  const { connect } = nodeProcess()!.getBuiltinModule!('node:net')
  if (new TextEncoder().encode(path).length <= LIMITS.socketPathBytes) return connect({ ...options, path })
  const fs = nodeProcess()!.getBuiltinModule!('node:fs')
  const end = path.lastIndexOf('/')
  const directory = fs.openSync(path.slice(0, end), O_PATH)
  try {
    return connect({ ...options, path: `/proc/self/fd/${directory}/${path.slice(end + 1)}` })
  } finally {
    fs.closeSync(directory)
  }
}
