// Printed by npm run gen from native/guest/message.def. Do not edit.
// biome-ignore-all format: printed by a script
import type { FieldTable } from '../wire/fields.ts'

export const GENERATION = 1
export const MAX_DATA = 262144
export const INITIAL_WINDOW = 1048576
export const OUTPUT_BUFFER = 262144
export const STDIN_BUFFER = 262144
export const MAX_PROCESSES = 4096
export const MAX_STREAMS = 8192
export const MAX_ID = 64
export const MAX_PATH = 4095

export const MESSAGE = {
  HELLO: 1,
  WELCOME: 2,
  PING: 3,
  PONG: 4,
  HANGUP: 5,
  OK: 16,
  ERROR: 17,
  OPENED: 18,
  DATA: 19,
  END: 20,
  WINDOW: 21,
  RESET: 22,
  SETUP: 32,
  KILL_ALL: 33,
  PORTS: 34,
  SPAWN: 48,
  SPAWNED: 49,
  ATTACH: 50,
  ATTACHED: 51,
  OUTPUT: 52,
  ACK: 53,
  STDIN: 54,
  STDIN_END: 55,
  STDIN_WINDOW: 56,
  EXITED: 57,
  FORGET: 58,
  SIGNAL: 59,
  RESIZE: 60,
  PROCESSES: 61,
  STAT: 80,
  LIST: 81,
  ENTRIES: 82,
  READ: 83,
  WRITE: 84,
  MKDIR: 85,
  MOVE: 86,
  COPY: 87,
  REMOVE: 88,
  CHMOD: 89,
  CHOWN: 90,
  SYMLINK: 91,
  REALPATH: 92,
  TAR_OUT: 93,
  TAR_IN: 94,
  WATCH: 112,
  EVENT: 113,
  DIAL: 114,
  EXPOSE: 115,
} as const

export type MessageName = keyof typeof MESSAGE

/** Who may send a message. */
export const SENDER = {
  HELLO: 'guest',
  WELCOME: 'server',
  PING: 'server',
  PONG: 'guest',
  HANGUP: 'server',
  OK: 'guest',
  ERROR: 'guest',
  OPENED: 'guest',
  DATA: 'both',
  END: 'both',
  WINDOW: 'both',
  RESET: 'server',
  SETUP: 'server',
  KILL_ALL: 'server',
  PORTS: 'server',
  SPAWN: 'server',
  SPAWNED: 'guest',
  ATTACH: 'server',
  ATTACHED: 'guest',
  OUTPUT: 'guest',
  ACK: 'server',
  STDIN: 'server',
  STDIN_END: 'server',
  STDIN_WINDOW: 'guest',
  EXITED: 'guest',
  FORGET: 'server',
  SIGNAL: 'server',
  RESIZE: 'server',
  PROCESSES: 'server',
  STAT: 'server',
  LIST: 'server',
  ENTRIES: 'guest',
  READ: 'server',
  WRITE: 'server',
  MKDIR: 'server',
  MOVE: 'server',
  COPY: 'server',
  REMOVE: 'server',
  CHMOD: 'server',
  CHOWN: 'server',
  SYMLINK: 'server',
  REALPATH: 'server',
  TAR_OUT: 'server',
  TAR_IN: 'server',
  WATCH: 'server',
  EVENT: 'guest',
  DIAL: 'server',
  EXPOSE: 'server',
} as const

export type EntryRecord = {
  path?: string
  type?: number
  size?: number
  mode?: number
  uid?: number
  gid?: number
  mtimeMs?: number
  target?: string
}

const ENTRY_RECORD: FieldTable = [
  { tag: 1, name: 'path', kind: 'str' },
  { tag: 2, name: 'type', kind: 'u32' },
  { tag: 3, name: 'size', kind: 'u64' },
  { tag: 4, name: 'mode', kind: 'u32' },
  { tag: 5, name: 'uid', kind: 'u32' },
  { tag: 6, name: 'gid', kind: 'u32' },
  { tag: 7, name: 'mtimeMs', kind: 'u64' },
  { tag: 8, name: 'target', kind: 'str' },
]

export type FileRecord = {
  path?: string
  content?: Uint8Array
  mode?: number
  owner?: string
}

const FILE_RECORD: FieldTable = [
  { tag: 1, name: 'path', kind: 'str' },
  { tag: 2, name: 'content', kind: 'bytes' },
  { tag: 3, name: 'mode', kind: 'u32' },
  { tag: 4, name: 'owner', kind: 'str' },
]

export type SizeRecord = {
  cols?: number
  rows?: number
}

const SIZE_RECORD: FieldTable = [
  { tag: 1, name: 'cols', kind: 'u32' },
  { tag: 2, name: 'rows', kind: 'u32' },
]

export type RlimitRecord = {
  resource?: number
  soft?: number
  hard?: number
}

const RLIMIT_RECORD: FieldTable = [
  { tag: 1, name: 'resource', kind: 'u32' },
  { tag: 2, name: 'soft', kind: 'u64' },
  { tag: 3, name: 'hard', kind: 'u64' },
]

export type PortRecord = {
  port?: number
  address?: string
  uid?: number
  pid?: number
  session?: number
}

const PORT_RECORD: FieldTable = [
  { tag: 1, name: 'port', kind: 'u32' },
  { tag: 2, name: 'address', kind: 'str' },
  { tag: 3, name: 'uid', kind: 'u32' },
  { tag: 4, name: 'pid', kind: 'u32' },
  { tag: 5, name: 'session', kind: 'u32' },
]

export type ProcessRecord = {
  id?: string
  pid?: number
  running?: number
  outputStart?: number
  outputEnd?: number
  stdinOffset?: number
  stdinEnded?: number
}

const PROCESS_RECORD: FieldTable = [
  { tag: 1, name: 'id', kind: 'str' },
  { tag: 2, name: 'pid', kind: 'u32' },
  { tag: 3, name: 'running', kind: 'u32' },
  { tag: 4, name: 'outputStart', kind: 'u64' },
  { tag: 5, name: 'outputEnd', kind: 'u64' },
  { tag: 6, name: 'stdinOffset', kind: 'u64' },
  { tag: 7, name: 'stdinEnded', kind: 'u32' },
]

export type HelloFields = {
  generation?: number
  bootId?: string
  privileged?: number
}

export type WelcomeFields = {
  generation?: number
}

export type HangupFields = {
  delayMs?: number
}

export type OkFields = {
  entry?: EntryRecord[]
  path?: string
  count?: number
  truncated?: number
  port?: PortRecord[]
  process?: ProcessRecord[]
}

export type ErrorFields = {
  kind?: number
  errnoName?: string
  stage?: string
  message?: string
  path?: string
}

export type OpenedFields = {
  entry?: EntryRecord
}

export type EndFields = Record<never, never>

export type WindowFields = {
  limit?: number
}

export type ResetFields = Record<never, never>

export type SetupFields = {
  file?: FileRecord[]
}

export type KillAllFields = Record<never, never>

export type PortsFields = Record<never, never>

export type SpawnFields = {
  id?: string
  argv?: Uint8Array[]
  env?: Uint8Array[]
  cwd?: string
  user?: string
  timeoutMs?: number
  stdin?: number
  pty?: SizeRecord
  rlimit?: RlimitRecord[]
  endsSession?: number
  quietMs?: number
}

export type SpawnedFields = {
  pid?: number
}

export type AttachFields = {
  id?: string
  offset?: number
}

export type AttachedFields = {
  process?: ProcessRecord
}

export type AckFields = {
  offset?: number
}

export type StdinEndFields = Record<never, never>

export type StdinWindowFields = {
  limit?: number
}

export type ExitedFields = {
  code?: number
  signal?: number
  timedOut?: number
  outputEnd?: number
  durationUs?: number
}

export type ForgetFields = Record<never, never>

export type SignalFields = {
  id?: string
  signal?: number
  group?: number
}

export type ResizeFields = {
  id?: string
  size?: SizeRecord
}

export type ProcessesFields = Record<never, never>

export type StatFields = {
  path?: string
  follow?: number
}

export type ListFields = {
  path?: string
  depth?: number
  limit?: number
}

export type EntriesFields = {
  entry?: EntryRecord[]
}

export type ReadFields = {
  path?: string
  offset?: number
  length?: number
  nofollow?: number
  window?: number
}

export type WriteFields = {
  path?: string
  mode?: number
  owner?: string
  parents?: number
  exclusive?: number
  newOwner?: string
}

export type MkdirFields = {
  path?: string
  parents?: number
  mode?: number
  owner?: string
}

export type MoveFields = {
  from?: string
  to?: string
  overwrite?: number
}

export type CopyFields = {
  from?: string
  to?: string
  recursive?: number
  overwrite?: number
  owner?: string
  skip?: string[]
}

export type RemoveFields = {
  path?: string
  recursive?: number
}

export type ChmodFields = {
  path?: string
  mode?: number
}

export type ChownFields = {
  path?: string
  owner?: string
}

export type SymlinkFields = {
  path?: string
  target?: string
}

export type RealpathFields = {
  path?: string
}

export type TarOutFields = {
  path?: string
  window?: number
}

export type TarInFields = {
  path?: string
  owner?: string
}

export type WatchFields = {
  path?: string
  recursive?: number
  ignore?: string[]
}

export type EventFields = {
  kind?: number
  path?: string
  directory?: number
}

export type DialFields = {
  port?: number
  host?: string
  window?: number
}

export type ExposeFields = {
  socket?: string
}

/** The fields of each message; null where the payload is raw bytes. */
export const FIELDS: Record<MessageName, FieldTable | null> = {
  HELLO: [
    { tag: 1, name: 'generation', kind: 'u32' },
    { tag: 2, name: 'bootId', kind: 'str' },
    { tag: 3, name: 'privileged', kind: 'u32' },
  ],
  WELCOME: [
    { tag: 1, name: 'generation', kind: 'u32' },
  ],
  PING: null,
  PONG: null,
  HANGUP: [
    { tag: 1, name: 'delayMs', kind: 'u32' },
  ],
  OK: [
    { tag: 1, name: 'entry', kind: ENTRY_RECORD, list: true },
    { tag: 2, name: 'path', kind: 'str' },
    { tag: 3, name: 'count', kind: 'u64' },
    { tag: 4, name: 'truncated', kind: 'u32' },
    { tag: 5, name: 'port', kind: PORT_RECORD, list: true },
    { tag: 6, name: 'process', kind: PROCESS_RECORD, list: true },
  ],
  ERROR: [
    { tag: 1, name: 'kind', kind: 'u32' },
    { tag: 2, name: 'errnoName', kind: 'str' },
    { tag: 3, name: 'stage', kind: 'str' },
    { tag: 4, name: 'message', kind: 'str' },
    { tag: 5, name: 'path', kind: 'str' },
  ],
  OPENED: [
    { tag: 1, name: 'entry', kind: ENTRY_RECORD },
  ],
  DATA: null,
  END: [],
  WINDOW: [
    { tag: 1, name: 'limit', kind: 'u64' },
  ],
  RESET: [],
  SETUP: [
    { tag: 1, name: 'file', kind: FILE_RECORD, list: true },
  ],
  KILL_ALL: [],
  PORTS: [],
  SPAWN: [
    { tag: 1, name: 'id', kind: 'str' },
    { tag: 2, name: 'argv', kind: 'bytes', list: true },
    { tag: 3, name: 'env', kind: 'bytes', list: true },
    { tag: 4, name: 'cwd', kind: 'str' },
    { tag: 5, name: 'user', kind: 'str' },
    { tag: 6, name: 'timeoutMs', kind: 'u64' },
    { tag: 7, name: 'stdin', kind: 'u32' },
    { tag: 8, name: 'pty', kind: SIZE_RECORD },
    { tag: 9, name: 'rlimit', kind: RLIMIT_RECORD, list: true },
    { tag: 10, name: 'endsSession', kind: 'u32' },
    { tag: 11, name: 'quietMs', kind: 'u32' },
  ],
  SPAWNED: [
    { tag: 1, name: 'pid', kind: 'u32' },
  ],
  ATTACH: [
    { tag: 1, name: 'id', kind: 'str' },
    { tag: 2, name: 'offset', kind: 'u64' },
  ],
  ATTACHED: [
    { tag: 1, name: 'process', kind: PROCESS_RECORD },
  ],
  OUTPUT: null,
  ACK: [
    { tag: 1, name: 'offset', kind: 'u64' },
  ],
  STDIN: null,
  STDIN_END: [],
  STDIN_WINDOW: [
    { tag: 1, name: 'limit', kind: 'u64' },
  ],
  EXITED: [
    { tag: 1, name: 'code', kind: 'u32' },
    { tag: 2, name: 'signal', kind: 'u32' },
    { tag: 3, name: 'timedOut', kind: 'u32' },
    { tag: 4, name: 'outputEnd', kind: 'u64' },
    { tag: 5, name: 'durationUs', kind: 'u64' },
  ],
  FORGET: [],
  SIGNAL: [
    { tag: 1, name: 'id', kind: 'str' },
    { tag: 2, name: 'signal', kind: 'u32' },
    { tag: 3, name: 'group', kind: 'u32' },
  ],
  RESIZE: [
    { tag: 1, name: 'id', kind: 'str' },
    { tag: 2, name: 'size', kind: SIZE_RECORD },
  ],
  PROCESSES: [],
  STAT: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'follow', kind: 'u32' },
  ],
  LIST: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'depth', kind: 'u32' },
    { tag: 3, name: 'limit', kind: 'u64' },
  ],
  ENTRIES: [
    { tag: 1, name: 'entry', kind: ENTRY_RECORD, list: true },
  ],
  READ: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'offset', kind: 'u64' },
    { tag: 3, name: 'length', kind: 'u64' },
    { tag: 4, name: 'nofollow', kind: 'u32' },
    { tag: 5, name: 'window', kind: 'u32' },
  ],
  WRITE: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'mode', kind: 'u32' },
    { tag: 3, name: 'owner', kind: 'str' },
    { tag: 4, name: 'parents', kind: 'u32' },
    { tag: 5, name: 'exclusive', kind: 'u32' },
    { tag: 6, name: 'newOwner', kind: 'str' },
  ],
  MKDIR: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'parents', kind: 'u32' },
    { tag: 3, name: 'mode', kind: 'u32' },
    { tag: 4, name: 'owner', kind: 'str' },
  ],
  MOVE: [
    { tag: 1, name: 'from', kind: 'str' },
    { tag: 2, name: 'to', kind: 'str' },
    { tag: 3, name: 'overwrite', kind: 'u32' },
  ],
  COPY: [
    { tag: 1, name: 'from', kind: 'str' },
    { tag: 2, name: 'to', kind: 'str' },
    { tag: 3, name: 'recursive', kind: 'u32' },
    { tag: 4, name: 'overwrite', kind: 'u32' },
    { tag: 5, name: 'owner', kind: 'str' },
    { tag: 6, name: 'skip', kind: 'str', list: true },
  ],
  REMOVE: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'recursive', kind: 'u32' },
  ],
  CHMOD: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'mode', kind: 'u32' },
  ],
  CHOWN: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'owner', kind: 'str' },
  ],
  SYMLINK: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'target', kind: 'str' },
  ],
  REALPATH: [
    { tag: 1, name: 'path', kind: 'str' },
  ],
  TAR_OUT: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'window', kind: 'u32' },
  ],
  TAR_IN: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'owner', kind: 'str' },
  ],
  WATCH: [
    { tag: 1, name: 'path', kind: 'str' },
    { tag: 2, name: 'recursive', kind: 'u32' },
    { tag: 3, name: 'ignore', kind: 'str', list: true },
  ],
  EVENT: [
    { tag: 1, name: 'kind', kind: 'u32' },
    { tag: 2, name: 'path', kind: 'str' },
    { tag: 3, name: 'directory', kind: 'u32' },
  ],
  DIAL: [
    { tag: 1, name: 'port', kind: 'u32' },
    { tag: 2, name: 'host', kind: 'str' },
    { tag: 3, name: 'window', kind: 'u32' },
  ],
  EXPOSE: [
    { tag: 1, name: 'socket', kind: 'str' },
  ],
}

export interface FieldsOf {
  HELLO: HelloFields
  WELCOME: WelcomeFields
  PING: never
  PONG: never
  HANGUP: HangupFields
  OK: OkFields
  ERROR: ErrorFields
  OPENED: OpenedFields
  DATA: never
  END: EndFields
  WINDOW: WindowFields
  RESET: ResetFields
  SETUP: SetupFields
  KILL_ALL: KillAllFields
  PORTS: PortsFields
  SPAWN: SpawnFields
  SPAWNED: SpawnedFields
  ATTACH: AttachFields
  ATTACHED: AttachedFields
  OUTPUT: never
  ACK: AckFields
  STDIN: never
  STDIN_END: StdinEndFields
  STDIN_WINDOW: StdinWindowFields
  EXITED: ExitedFields
  FORGET: ForgetFields
  SIGNAL: SignalFields
  RESIZE: ResizeFields
  PROCESSES: ProcessesFields
  STAT: StatFields
  LIST: ListFields
  ENTRIES: EntriesFields
  READ: ReadFields
  WRITE: WriteFields
  MKDIR: MkdirFields
  MOVE: MoveFields
  COPY: CopyFields
  REMOVE: RemoveFields
  CHMOD: ChmodFields
  CHOWN: ChownFields
  SYMLINK: SymlinkFields
  REALPATH: RealpathFields
  TAR_OUT: TarOutFields
  TAR_IN: TarInFields
  WATCH: WatchFields
  EVENT: EventFields
  DIAL: DialFields
  EXPOSE: ExposeFields
}

export const ERROR_KIND = {
  BAD_REQUEST: 1,
  NOT_FOUND: 2,
  EXISTS: 3,
  NOT_DIRECTORY: 4,
  IS_DIRECTORY: 5,
  NOT_EMPTY: 6,
  DENIED: 7,
  NO_SPACE: 8,
  LIMIT: 9,
  NO_USER: 10,
  NOT_EXECUTABLE: 11,
  NO_PROCESS: 12,
  REFUSED: 13,
  UNSUPPORTED: 14,
  IO: 15,
} as const

export type ErrorKind = keyof typeof ERROR_KIND
