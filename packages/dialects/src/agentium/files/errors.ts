// Errors of the file system, in our codes.
import { type ErrorCode, IsletError } from '@islet/sdk'

const CODES: Record<string, ErrorCode> = {
  ENOENT: 'file_not_found',
  ENOTDIR: 'not_a_directory',
  EISDIR: 'is_a_directory',
  EEXIST: 'file_exists',
  EACCES: 'access_denied',
  EPERM: 'access_denied',
  ENAMETOOLONG: 'invalid_path',
  ENOSPC: 'sandbox_disk_full',
  EDQUOT: 'sandbox_disk_full',
  // A fifo or a socket.
  ENXIO: 'not_a_file',
}

export function fileError(error: unknown, path: string): unknown {
  const errno = errnoOf(error)
  if (errno === undefined) return error
  const code = CODES[errno] ?? 'io_error'
  return new IsletError(code, `${shown(path)}: ${MESSAGES[code] ?? errno}.`, { cause: error })
}

const MESSAGES: Partial<Record<ErrorCode, string>> = {
  file_not_found: 'there is no such file or directory',
  not_a_directory: 'a part of the path is not a directory',
  is_a_directory: 'the path is a directory',
  file_exists: 'something exists there already',
  access_denied: 'access is denied',
  not_a_file: 'the path is not a regular file',
  invalid_path: 'the path is too long',
  sandbox_disk_full: 'the disk is full',
}

export function errnoOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown; errno?: unknown } | null)?.code
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : undefined
}

export function shown(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path
}
