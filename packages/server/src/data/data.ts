// What happens inside a sandbox, as api/ serves it: processes and files.
import type {
  CommandResult,
  ExecParsed,
  FileEntry,
  FileList,
  GetOutputParsed,
  ProcessInfo,
  ProcessOutput,
  RunParsed,
  RunResult,
  StartProcessParsed,
} from '@islet/contract'
import type { OutputChannel, TerminalSize } from '../guest/guest.ts'
import type { Chunks } from '../wire/chunks.ts'
import type { Told } from './output/kept-bytes.ts'

export interface ProcessService {
  /** Runs to the end. When `signal` aborts (the client went away) the command is killed. */
  exec(sandboxId: string, input: ExecParsed, options?: { signal?: AbortSignal }): Promise<Told<CommandResult>>
  run(input: RunParsed, options?: { signal?: AbortSignal }): Promise<Told<RunResult>>
  start(sandboxId: string, input: StartProcessParsed): Promise<ProcessInfo>
  list(sandboxId: string, query: { status?: ProcessInfo['status']; limit?: number }): Iterable<ProcessInfo>
  get(
    sandboxId: string,
    processId: string,
    options?: { waitMs?: number; signal?: AbortSignal },
  ): Promise<ProcessInfo>
  kill(sandboxId: string, processId: string): Promise<ProcessInfo>
  signal(sandboxId: string, processId: string, signal: number, options: { group: boolean }): Promise<void>
  writeStdin(
    sandboxId: string,
    processId: string,
    bytes: Uint8Array,
    options: { end: boolean },
  ): Promise<void>
  resize(sandboxId: string, processId: string, size: TerminalSize): Promise<void>
  output(sandboxId: string, processId: string, options?: GetOutputParsed): Promise<Told<ProcessOutput>>
  attach(sandboxId: string, processId: string, options: { replay: boolean }): Promise<Attachment>
}

export type AttachEvent =
  | { type: 'output'; channel: OutputChannel; bytes: Buffer }
  /** What is kept was removed while it was given: the next byte has this offset. */
  | { type: 'gap'; droppedBytes: number }
  | { type: 'replay-end' }
  | { type: 'exit'; result: NonNullable<ProcessInfo['result']> }

/** One client of a process. Iterate at your own pace: the program waits for the slowest attached client. */
export interface Attachment extends AsyncIterable<AttachEvent> {
  process: ProcessInfo
  truncated: boolean
  /** Printed before what is given. */
  droppedBytes: number
  writeStdin(bytes: Uint8Array): Promise<void>
  endStdin(): Promise<void>
  resize(size: TerminalSize): Promise<void>
  signal(signal: number): Promise<void>
  /** Leaves the process running. */
  close(): void
}

/** Paths may be relative to the sandbox's working directory; new things belong to its user unless `owner` says else. */
export interface FileService {
  /** The absolute path, as it is written. */
  resolve(sandboxId: string, path: string): string
  /** Alone among all that asked so for one of these files, by whatever path. */
  exclusively<T>(sandboxId: string, paths: readonly string[], work: () => Promise<T>): Promise<T>
  stat(sandboxId: string, path: string, options: { follow: boolean }): Promise<FileEntry>
  list(
    sandboxId: string,
    path: string | undefined,
    options: { depth: number; limit: number; signal?: AbortSignal },
  ): Promise<Told<FileList>>
  /** `start` and `end` as in an HTTP range, end inclusive; a negative start counts from the end. */
  read(
    sandboxId: string,
    path: string,
    options?: { start?: number; end?: number; signal?: AbortSignal },
  ): Promise<{ entry: FileEntry; start: number; length: number | undefined; body: Chunks<Buffer> }>
  write(
    sandboxId: string,
    path: string,
    body: Chunks,
    options?: { mode?: number; owner?: string; parents?: boolean; exclusive?: boolean; signal?: AbortSignal },
  ): Promise<FileEntry>
  remove(
    sandboxId: string,
    path: string,
    options: { recursive: boolean; signal?: AbortSignal },
  ): Promise<void>
  mkdir(
    sandboxId: string,
    path: string,
    options: { parents: boolean; mode?: number; owner?: string },
  ): Promise<FileEntry>
  move(sandboxId: string, from: string, to: string, options: { overwrite: boolean }): Promise<FileEntry>
  copy(
    sandboxId: string,
    from: string,
    to: string,
    options: { recursive: boolean; overwrite: boolean; signal?: AbortSignal },
  ): Promise<FileEntry>
  /** An uncompressed tar. */
  archive(sandboxId: string, path: string, options?: { signal?: AbortSignal }): Promise<Chunks<Buffer>>
  extract(
    sandboxId: string,
    path: string,
    body: AsyncIterable<Uint8Array>,
    options?: { owner?: string; signal?: AbortSignal },
  ): Promise<{ count: number }>
}
