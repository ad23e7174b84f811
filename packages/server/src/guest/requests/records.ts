// Records from the guest, checked and converted for callers. A record that does not fit is a Violation.
import { Violation } from '../errors.ts'
import type { Entry, EntryType, GuestExit, GuestProcessState, ListeningPort } from '../guest.ts'
import {
  type EntryRecord,
  type ExitedFields,
  MAX_ID,
  MAX_PATH,
  type PortRecord,
  type ProcessRecord,
} from '../messages.gen.ts'

const ENTRY_TYPES: readonly (EntryType | undefined)[] = [undefined, 'file', 'directory', 'symlink', 'other']
/** The last millisecond of an ISO date with a four-digit year. */
const MAX_TIME_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
const MAX_ADDRESS = 64
export const MAX_MODE = 0o7777
const MAX_PORT = 65_535
/** The largest pid that Linux uses. */
const MAX_PID = 2 ** 22

export function toEntry(record: EntryRecord | undefined): Entry {
  if (!record) throw new Violation('an answer without its entry')
  const { path = '', target, mode = 0 } = record
  const type = ENTRY_TYPES[record.type ?? 0]
  if (!type) throw new Violation(`an entry of the unknown type ${record.type}`)
  if (path.length > MAX_PATH || (target !== undefined && target.length > MAX_PATH))
    throw new Violation('an entry with a path over the maximum')
  if (mode > MAX_MODE) throw new Violation(`an entry with the mode ${mode}`)
  return {
    path,
    type,
    sizeBytes: record.size ?? 0,
    mode,
    uid: record.uid ?? 0,
    gid: record.gid ?? 0,
    mtimeMs: Math.min(record.mtimeMs ?? 0, MAX_TIME_MS),
    ...(target !== undefined && { target }),
  }
}

/** An entry of a list: joined to the listed directory, its path must lie below it. */
export function toListedEntry(record: EntryRecord): Entry {
  const entry = toEntry(record)
  const { path } = entry
  const below = path !== '' && !path.startsWith('/') && !path.includes('\0')
  if (!below || (path.includes('..') && path.split('/').includes('..')))
    throw new Violation('a listed entry outside the directory')
  return entry
}

export function toPort(record: PortRecord): ListeningPort {
  const { port = 0, address = '', uid = 0, pid, session } = record
  if (port < 1 || port > MAX_PORT) throw new Violation(`a listening port ${port}`)
  if (address.length > MAX_ADDRESS || /[^0-9A-Za-z.:%]/.test(address))
    throw new Violation('a listening port with a malformed address')
  if ((pid ?? 1) > MAX_PID || (session ?? 1) > MAX_PID)
    throw new Violation(`a listening port of process ${pid}, session ${session}`)
  return { port, address, uid, ...(pid && { pid }), ...(session && { session }) }
}

export function toExposed({ count = 0 }: { count?: number }): number {
  if (count < 1 || count > MAX_PORT) throw new Violation(`an exposed port ${count}`)
  return count
}

export function toProcess(record: ProcessRecord | undefined): GuestProcessState & { stdinEnded: boolean } {
  if (!record) throw new Violation('an answer without its process')
  const { id = '', pid = 0, outputStart = 0, outputEnd = 0, stdinOffset = 0 } = record
  if (id === '' || id.length > MAX_ID) throw new Violation('a process with a malformed id')
  if (outputStart > outputEnd) throw new Violation('a process whose output ends before it starts')
  const running = record.running === 1
  return { id, pid, running, outputStart, outputEnd, stdinOffset, stdinEnded: record.stdinEnded === 1 }
}

export function toExit(fields: ExitedFields): GuestExit {
  const { code = 0, signal = 0, outputEnd = 0, durationUs = 0 } = fields
  if (code > 255 || signal > 127) throw new Violation(`an exit with code ${code} and signal ${signal}`)
  return { code, signal, timedOut: fields.timedOut === 1, outputEnd, durationMs: durationUs / 1000 }
}
