// What the server can ask of a guest. link.ts implements it over one socket; native/guest/PROTOCOL.md describes the wire.
import type { Duplex } from 'node:stream'
import type { Chunks } from '../wire/chunks.ts'
import type { EntrySink } from './requests/list.ts'

export interface Guest {
  /** Whether the guest is connected now. It redials by itself when the connection drops. */
  readonly connected: boolean
  /** Changes when the guest was replaced by another one, whose processes are gone. Empty before the first connection. */
  readonly bootId: string
  /** Resolves once connected; rejects with `sandbox_lost` when the sandbox is gone for good, or `timeout`. */
  ready(options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<void>

  spawn(spec: SpawnSpec, sink: OutputSink): Promise<GuestProcess>
  /** Reads the output of a process from this offset on, after a reconnect or a restart of the server. */
  attach(id: string, offset: number, sink: OutputSink): Promise<GuestProcess>
  processes(): Promise<GuestProcessState[]>
  signal(id: string, signal: number, options: { group: boolean }): Promise<void>
  resize(id: string, size: TerminalSize): Promise<void>

  stat(path: string, options?: { follow?: boolean }): Promise<Entry>
  /** Paths are relative to the listed one. `truncated` beyond 100,000 entries or 32 MiB. A `sink` gets the entries instead. */
  list(
    path: string,
    options?: { depth?: number; limit?: number; signal?: AbortSignal; sink?: EntrySink },
  ): Promise<{ entries: Entry[]; truncated: boolean }>
  /** Reads regular files only; with `nofollow` a symlink is refused. */
  read(
    path: string,
    options?: { offset?: number; length?: number; nofollow?: boolean; signal?: AbortSignal },
  ): Promise<{ entry: Entry; body: Chunks<Buffer> }>
  /** Chunks of the body must not be changed before they are released. */
  write(path: string, body: Chunks, options?: WriteOptions): Promise<Entry>
  mkdir(path: string, options?: { parents?: boolean; mode?: number; owner?: string }): Promise<void>
  move(from: string, to: string, options?: { overwrite?: boolean }): Promise<void>
  copy(from: string, to: string, options?: CopyOptions): Promise<void>
  remove(path: string, options?: { recursive?: boolean; signal?: AbortSignal }): Promise<void>
  chmod(path: string, mode: number): Promise<void>
  chown(path: string, owner: string): Promise<void>
  symlink(path: string, target: string): Promise<void>
  realpath(path: string): Promise<string>
  tarOut(path: string, options?: { signal?: AbortSignal }): Promise<Chunks<Buffer>>
  tarIn(
    path: string,
    body: Chunks,
    options?: { owner?: string; signal?: AbortSignal },
  ): Promise<{ count: number }>

  /**
   * Changes below a path until the signal aborts or the iteration ends. Entries whose name matches `ignore` are neither watched
   * nor reported; a pattern has no slash, `*` stands for any run of bytes, and `\` takes the next byte literally.
   */
  watch(
    path: string,
    options: { recursive: boolean; ignore?: readonly string[]; signal?: AbortSignal },
  ): Promise<AsyncIterable<WatchEvent>>
  /** A connection to a port on the sandbox's loopback. Each direction ends by itself; an error without listeners is harmless. */
  dial(port: number, options?: { host?: '127.0.0.1' | '::1'; signal?: AbortSignal }): Promise<Duplex>
  ports(): Promise<ListeningPort[]>
  /**
   * A port on the sandbox's loopback that leads to the unix socket of this name beside the link's. Calling it again, also from
   * another server, returns the same port.
   */
  expose(socketName: string): Promise<number>

  /** Writes files right after a root was bound, and replaces what is at their paths. */
  setup(files: readonly SetupFile[]): Promise<void>
  /** Kills and forgets every process; `exited` of a process that ran says signal 9. */
  killAll(): Promise<void>
  ping(): Promise<void>
  /** Asks the guest to close the connection and to dial again after `delayMs`. */
  hangup(delayMs: number): void
}

export interface SpawnSpec {
  id: string
  argv: readonly string[]
  env: Record<string, string>
  cwd: string
  /** Name, uid, `name:group` or `uid:gid`; empty: root (as the guest). */
  user: string
  timeoutMs?: number
  stdin: boolean
  pty?: TerminalSize
  /** When it exits, the rest of its session is killed. */
  endsSession?: boolean
  /** `spawn` may resolve this much later, together with the first output or the exit: short commands cost less. */
  quietMs?: number
}

export interface TerminalSize {
  cols: number
  rows: number
}

export type OutputChannel = 'stdout' | 'stderr'

/**
 * Receives output in order, each byte once. The guest keeps a byte until the promise of the call that delivered it has
 * resolved, and stops the program when too much is pending: a slow sink slows its program and nothing else. After a lost
 * connection the link attaches again by itself at the sink's offset. A sink that throws or rejects is not called again: `exited`
 * rejects with its error, and the process runs on for the next `attach`. The bytes are freed after the call: copy what you keep.
 */
export interface OutputSink {
  write(channel: OutputChannel, bytes: Buffer, offset: number): void | Promise<void>
}

export interface GuestProcess {
  id: string
  pid: number
  /** Resolves after the sink took the last byte. Rejects with `sandbox_lost` when the guest is gone for good. */
  exited: Promise<GuestExit>
  /** Resolves when the bytes are sent or held and there is room for more. Does nothing after the program's end. */
  writeStdin(bytes: Uint8Array): Promise<void>
  endStdin(): Promise<void>
  /** The result is recorded: the guest may forget the process. A process that still runs is killed, and `exited` says signal 9. */
  forget(): void
}

export interface GuestExit {
  code: number
  /** 0: it exited by itself. */
  signal: number
  timedOut: boolean
  outputEnd: number
  durationMs: number
}

export interface GuestProcessState {
  id: string
  pid: number
  running: boolean
  outputStart: number
  outputEnd: number
  stdinOffset: number
}

export type EntryType = 'file' | 'directory' | 'symlink' | 'other'

export interface Entry {
  path: string
  type: EntryType
  sizeBytes: number
  mode: number
  uid: number
  gid: number
  mtimeMs: number
  target?: string
}

export interface WriteOptions {
  mode?: number
  owner?: string
  /** Without `owner`: the owner of a new file and of new parent directories. */
  newOwner?: string
  parents?: boolean
  exclusive?: boolean
  signal?: AbortSignal
}

interface CopyOptions {
  recursive?: boolean
  overwrite?: boolean
  /** Default: the owner of the source. */
  owner?: string
  /** Paths below the directory that are left out with everything in them; at most 512 KiB together. */
  skip?: readonly string[]
  signal?: AbortSignal
}

export interface WatchEvent {
  kind: 'created' | 'changed' | 'removed' | 'overflow'
  path: string
  directory: boolean
}

export interface ListeningPort {
  port: number
  address: string
  uid: number
  /** A process that listens on it; absent when the guest did not find one. */
  pid?: number
  /** The session of that process: the pid of the spawned process that it descends from. */
  session?: number
}

export interface SetupFile {
  path: string
  content: string | Uint8Array
  mode: number
  owner?: string
}
