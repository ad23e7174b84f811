// Any user of a machine can listen on a free port. Before a key from a file is sent to an address of this machine, the kernel
// is asked whose program listens there: it must belong to root, to us, or to the owner of the key file.
//
//   /proc/net/tcp, tcp6:   sl  local_address rem_address   st ... uid
//                           0: 0100007F:1CE8 00000000:0000 0A ...   0     listening sockets (0A) come first
import { ClientError } from '../errors.ts'
import { nodeProcess } from '../platform.ts'

/** How long a result is reused: short, so that a new listener is noticed, and long enough that frequent calls ask rarely. */
const GOOD_FOR_MS = 1000
const CHUNK_BYTES = 64 * 1024
const LISTENING = '0A'

/** The check throws unless the program that listens at `url`, on this machine, may see the key in the file `keyPath`. */
export function ownerCheck(url: string, keyPath: string): () => void {
  let lastMs = Number.NEGATIVE_INFINITY
  return () => {
    if (performance.now() - lastMs < GOOD_FOR_MS) return
    assertOwner(url, keyPath)
    lastMs = performance.now()
  }
}

function assertOwner(url: string, keyPath: string): void {
  const fs = nodeProcess()!.getBuiltinModule!('node:fs')
  const owners = listeners(new URL(url))
  if (owners === undefined)
    throw refused(
      `The owner of the program that listens at ${url} is not known, so the key in ${keyPath} is not sent there.`,
    )
  if (owners.length === 0)
    throw new ClientError('connection_failed', `No answer from ${url} (nothing listens there).`)
  const trusted = [0, nodeProcess()?.geteuid?.(), fs.statSync(keyPath).uid]
  const stranger = owners.find((uid) => !trusted.includes(uid))
  if (stranger !== undefined)
    throw refused(
      `The program that listens at ${url} belongs to uid ${stranger}, not to root, you or the owner of the key: the key in ${keyPath} is not sent there.`,
    )
}

function refused(message: string): ClientError {
  return new ClientError('untrusted_server', message)
}

/** The uids of all programs that may get a connection to `url`; undefined if the kernel does not say. */
function listeners({ hostname, port, protocol }: URL): number[] | undefined {
  const number = Number(port || (protocol === 'https:' ? 443 : 80))
  const suffix = `:${number.toString(16).toUpperCase().padStart(4, '0')}`
  const places = addressesOf(hostname).map((address) => address + suffix)
  const rows = ['/proc/net/tcp', '/proc/net/tcp6'].map(listeningRows)
  if (rows[0] === undefined) return undefined
  return rows
    .flatMap((known) => known ?? [])
    .filter(([, place = '']) => places.includes(place))
    .map((row) => Number(row[7]))
}

/** As the kernel prints them: words of 32 bits, last byte first. A socket that listens on all addresses counts too. */
function addressesOf(hostname: string): string[] {
  const isName = hostname === 'localhost'
  const bytes = (isName ? '127.0.0.1' : hostname)
    .split('.')
    .map((part) => Number(part).toString(16).padStart(2, '0'))
  const four = bytes.reverse().join('').toUpperCase()
  const all = '0'.repeat(32)
  const ofFour = [four, '0'.repeat(8), `0000000000000000FFFF0000${four}`, all]
  const ofSix = [`${'0'.repeat(24)}01000000`, all]
  return isName ? [...ofFour, ...ofSix] : hostname.startsWith('[') ? ofSix : ofFour
}

/** The fields of each listening row; undefined if there is no such file. Stops before the rows of connections, which come later. */
function listeningRows(path: string): string[][] | undefined {
  const fs = nodeProcess()!.getBuiltinModule!('node:fs')
  let file: number
  try {
    file = fs.openSync(path, 'r')
  } catch {
    return undefined
  }
  try {
    const buffer = new Uint8Array(CHUNK_BYTES)
    const decoder = new TextDecoder()
    const rows: string[][] = []
    for (let rest = ''; ; ) {
      const length = fs.readSync(file, buffer)
      const lines = (rest + decoder.decode(buffer.subarray(0, length))).split('\n')
      rest = lines.pop()!
      for (const line of lines) {
        const fields = line.trim().split(/\s+/)
        if (fields[0] === 'sl') continue
        if (fields[3] !== LISTENING) return rows
        rows.push(fields)
      }
      if (length === 0) return rows
    }
  } finally {
    fs.closeSync(file)
  }
}
