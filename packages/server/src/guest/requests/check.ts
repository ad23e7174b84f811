// Checks before a request is sent. The guest checks the same, but its answers say less.
import { IsletError } from '@islet/contract'
import { MAX_PAYLOAD } from '../../wire/frames.ts'
import type { SpawnSpec } from '../guest.ts'
import { MAX_ID, MAX_PATH } from '../messages.gen.ts'
import { MAX_MODE } from './records.ts'

/** Bytes of a field beside its value. */
const FIELD_BYTES = 5
const MAX_U32 = 0xffff_ffff
const MAX_OWNER = 256

export function checkPath(path: string): void {
  if (typeof path !== 'string' || !path.startsWith('/') || path.includes('\0'))
    throw new IsletError('invalid_path', 'The path must be absolute and without NUL.')
  checkLength(path, MAX_PATH, 'The path')
}

/** The target of a symlink: any path, also a relative one. */
export function checkTarget(target: string): void {
  if (typeof target !== 'string' || target.length === 0 || target.includes('\0'))
    throw new IsletError('invalid_path', 'The target must not be empty or hold a NUL.')
  checkLength(target, MAX_PATH, 'The target')
}

export function checkOwner(owner: string | undefined): void {
  if (owner === undefined) return
  if (owner.length > MAX_OWNER || owner.includes('\0'))
    throw new IsletError('bad_request', `The owner must be at most ${MAX_OWNER} characters and without NUL.`)
}

export function checkId(id: string): void {
  if (id.length === 0 || id.includes('\0') || Buffer.byteLength(id) > MAX_ID)
    throw new IsletError('bad_request', `A process id has 1 to ${MAX_ID} bytes and no NUL.`)
}

export function checkNumber(name: string, value: number | undefined, max = MAX_U32): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 0 && value <= max)) return
  throw new IsletError('bad_request', `${name} must be a whole number from 0 to ${max}.`)
}

export function checkMode(mode: number | undefined): void {
  checkNumber('mode', mode, MAX_MODE)
}

export function checkPort(port: number): void {
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new IsletError('bad_request', 'A port is a whole number from 1 to 65535.')
}

export function checkSpawn(spec: SpawnSpec, env: readonly string[]): void {
  checkId(spec.id)
  if (spec.argv.length === 0 || spec.argv[0] === '')
    throw new IsletError('bad_request', 'There is no command to run.')
  if (spec.cwd !== '') checkPath(spec.cwd)
  checkOwner(spec.user)
  checkNumber('timeoutMs', spec.timeoutMs, Number.MAX_SAFE_INTEGER)
  checkNumber('quietMs', spec.quietMs)
  if (spec.pty) checkSize(spec.pty)
  let bytes = 8192 + spec.cwd.length * 4
  for (const text of spec.argv) bytes += measure(text, 'An argument')
  for (const text of env) bytes += measure(text, 'An environment variable')
  for (const name of Object.keys(spec.env))
    if (name === '' || name.includes('='))
      throw new IsletError('bad_request', 'A name in the environment is empty or holds a "=".')
  if (bytes > MAX_PAYLOAD)
    throw new IsletError('bad_request', 'The arguments and the environment together are larger than 1 MiB.', {
      hint: 'Pass large input through stdin or a file instead of arguments or the environment.',
    })
}

export function checkSize(size: { cols: number; rows: number }): void {
  checkNumber('cols', size.cols, 65_535)
  checkNumber('rows', size.rows, 65_535)
}

function measure(text: string, what: string): number {
  if (text.includes('\0')) throw new IsletError('bad_request', `${what} holds a NUL.`)
  return FIELD_BYTES + Buffer.byteLength(text)
}

function checkLength(text: string, max: number, what: string): void {
  if (text.length * 3 > max && Buffer.byteLength(text) > max)
    throw new IsletError('invalid_path', `${what} is longer than ${max} bytes.`)
}
