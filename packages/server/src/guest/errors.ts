// Failures on the link, as the errors that a caller sees. Text from the guest is untrusted: it is cut and cleaned.
import { type ErrorCode, IsletError } from '@islet/contract'
import { isWithin } from '../lib/is-within.ts'
import { WireError } from '../wire/frames.ts'
import { ERROR_KIND, type ErrorFields, type ErrorKind, MAX_PATH } from './messages.gen.ts'

/** The guest broke the protocol. The connection is closed with this reason. */
export class Violation extends WireError {
  override name = 'Violation'
}

/** What a request was about, for its error message. */
export interface About {
  path?: string
  /** Where a move or copy goes. */
  to?: string
  command?: string
  cwd?: string
  user?: string
  processId?: string
  port?: number
}

const KIND_NAMES = new Map<number, ErrorKind>(
  Object.entries(ERROR_KIND).map(([name, code]) => [code, name as ErrorKind]),
)

/** The code and message of each kind, unless the stage says more. */
const BY_KIND: Record<ErrorKind, (about: About) => [ErrorCode, string]> = {
  BAD_REQUEST: () => ['bad_request', 'The sandbox refused the request as malformed'],
  NOT_FOUND: ({ path }) => ['file_not_found', `There is no ${quote(path, 'such file or directory')}`],
  EXISTS: ({ path }) => ['file_exists', `Something exists at ${quote(path, 'that path')} already`],
  NOT_DIRECTORY: ({ path }) => ['not_a_directory', `A part of ${quote(path, 'the path')} is not a directory`],
  IS_DIRECTORY: ({ path }) => ['is_a_directory', `${quote(path, 'The path')} is a directory`],
  NOT_EMPTY: ({ path }) => ['directory_not_empty', `The directory ${quote(path, '')} is not empty`],
  DENIED: ({ path }) => ['access_denied', `The sandbox denied access to ${quote(path, 'that')}`],
  NO_SPACE: () => ['sandbox_disk_full', 'The disk of the sandbox is full'],
  LIMIT: () => ['limit_exceeded', 'A limit of the sandbox is reached'],
  NO_USER: ({ user }) => ['user_not_found', `There is no user ${quote(user, 'of that name')} in the sandbox`],
  NOT_EXECUTABLE: ({ command }) => [
    'command_not_executable',
    `${quote(command, 'The command')} cannot be executed`,
  ],
  NO_PROCESS: ({ processId }) => [
    'process_not_found',
    `There is no process ${quote(processId, 'of that id')}`,
  ],
  REFUSED: ({ port }) => ['port_not_listening', `Nothing listens on port ${port ?? 0} in the sandbox`],
  UNSUPPORTED: ({ path }) =>
    path === undefined
      ? ['not_supported', 'The sandbox cannot do that']
      : ['not_a_file', `${quote(path, 'The path')} is not a regular file`],
  IO: ({ path }) => [
    'io_error',
    `The sandbox had an I/O error${path === undefined ? '' : ` at ${quote(path)}`}`,
  ],
}

/** For a spawn, the stage at which it failed says more than the kind. */
const BY_SPAWN_STAGE: Record<string, Partial<Record<ErrorKind, ErrorCode>>> = {
  user: { NO_USER: 'user_not_found', NOT_FOUND: 'user_not_found', DENIED: 'access_denied' },
  cwd: { NOT_FOUND: 'cwd_not_found', NOT_DIRECTORY: 'not_a_directory', DENIED: 'access_denied' },
  pty: { NO_SPACE: 'limit_exceeded' },
  exec: {
    NOT_FOUND: 'command_not_found',
    NOT_DIRECTORY: 'command_not_found',
    NOT_EXECUTABLE: 'command_not_executable',
    IS_DIRECTORY: 'command_not_executable',
    DENIED: 'command_not_executable',
  },
}

/** Kinds for which the guest's message says more than the kind and the path. */
const SAYS_MORE = new Set<ErrorKind>(['BAD_REQUEST', 'LIMIT', 'IO', 'UNSUPPORTED'])

const TOO_LARGE_HINT = 'Pass large input through stdin or a file instead of arguments or the environment.'

export function guestError(fields: ErrorFields, asked: About): IsletError {
  const about = { ...asked, ...blamed(fields, asked) }
  const errno = clean(fields.errnoName ?? '', 32)
  const stage = clean(fields.stage ?? '', 32)
  const kind = KIND_NAMES.get(fields.kind ?? 0) ?? 'IO'
  const details = {
    ...(errno && { errno }),
    ...(stage && { stage }),
    ...(about.path !== undefined && { path: about.path }),
  }
  const why = SAYS_MORE.has(kind) ? clean(fields.message ?? '', 200) : ''
  const end = why ? `: ${why}.` : errno ? ` (${errno}).` : '.'
  if (about.command !== undefined) {
    if (errno === 'E2BIG')
      return new IsletError('bad_request', `The arguments and environment are too large${end}`, {
        details,
        hint: TOO_LARGE_HINT,
      })
    const code = BY_SPAWN_STAGE[stage]?.[kind]
    if (code) return new IsletError(code, spawnSentence(stage, code, about) + end, { details })
  }
  const [code, sentence] = BY_KIND[kind](about)
  return new IsletError(code, sentence + end, { details })
}

/**
 * Which path the failure is about. The guest names it when a request has two paths, or when a parent directory is missing. It
 * is used only if it lies above or below a path of the request.
 */
function blamed({ path, kind }: ErrorFields, asked: About): Pick<About, 'path'> | undefined {
  const ends = [asked.path, asked.to].filter((end) => end !== undefined)
  if (path !== undefined && ends.some((end) => isWithin(path, end) || isWithin(end, path)))
    return { path: clean(path, MAX_PATH) }
  // An older guest does not name it.
  return kind === ERROR_KIND.EXISTS && asked.to !== undefined ? { path: asked.to } : undefined
}

function spawnSentence(stage: string, code: ErrorCode, { command, cwd, user }: About): string {
  if (stage === 'user' && code === 'access_denied')
    return `The sandbox may not run programs as ${quote(user)}`
  if (stage === 'pty') return 'The sandbox has no terminal left'
  if (stage === 'user') return `There is no user ${quote(user, 'of that name')} in the sandbox`
  if (code === 'command_not_found') return `The command ${quote(command)} was not found in the sandbox`
  if (code === 'command_not_executable') return `The command ${quote(command)} cannot be executed`
  if (code === 'cwd_not_found') return `The working directory ${quote(cwd)} does not exist in the sandbox`
  if (code === 'not_a_directory') return `The working directory ${quote(cwd)} is not a directory`
  return `The sandbox denied access to the working directory ${quote(cwd)}`
}

export function sandboxLost(reason: string): IsletError {
  return new IsletError('sandbox_lost', `The sandbox is gone: ${clean(reason, 200)}.`)
}

/** The sandbox may be alive, but whether the request took effect is unknown. */
export function connectionLost(): IsletError {
  return new IsletError(
    'sandbox_lost',
    'The connection to the sandbox was lost while the call was running; whether it took effect is unknown.',
    { details: { outcome: 'unknown' } },
  )
}

/** Text fit for a log line or a message: no control characters, bounded. */
export function clean(text: string, max: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must go
  const plain = text.slice(0, max + 1).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e]/g, ' ')
  return plain.length > max ? `${plain.slice(0, max)}…` : plain
}

function quote(text: string | undefined, otherwise = ''): string {
  return text === undefined ? otherwise : `"${clean(text, 200)}"`
}
