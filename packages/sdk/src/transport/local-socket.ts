// Connections through the socket file of a server on this machine, in Node.
import type { Socket as Connection } from 'node:net'
import { LIMITS } from '@islet/contract/client'
import { nodeProcess } from '../platform.ts'

type Done = (error: Error | null, connection: Connection) => void

/** Opens a directory without the right to read it. */
const O_PATH = 0o10000000
const RETRY_MS = 20
const GIVE_UP_MS = 10_000

/** If too many connections wait, a unix socket refuses more with EAGAIN, where TCP would let them wait: retry. */
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

/** The kernel limits the length of the path. A longer path is reached through a descriptor of its directory. */
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
