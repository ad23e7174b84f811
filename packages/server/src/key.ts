// The admin key: made at the first start, kept in <data>/key for the clients of the same machine.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Log } from './log.ts'

export interface AdminKey {
  /** Where clients of this machine find it; undefined when it was configured. */
  path: string | undefined
  /** Compares in constant time. */
  keyMatches(candidate: string): boolean
  /** Never log it. */
  reveal(): string
}

const MIN_CONFIGURED_LENGTH = 16
const RANDOM_BYTES = 32 // 43 characters of base64url

interface KeyOptions {
  /** The key of ISLET_API_KEY: used instead of the file. */
  configured?: string | undefined
  /** Members of this group may read the file. */
  gid?: number | undefined
  log?: Pick<Log, 'warn'> | undefined
}

export function loadOrCreateKey(dataDir: string, { configured, ...options }: KeyOptions = {}): AdminKey {
  if (configured !== undefined) return describe(checkText(configured, 'ISLET_API_KEY'), undefined)
  const path = join(dataDir, 'key')
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const key = createSecretOnce(path, () => `${newKey()}\n`, options)
  return describe(checkText(key.trim(), path), path)
}

/** Reads a file of mode 0600 (0640 with a `gid`); creates it with `make` if it is missing. */
export function createSecretOnce(
  path: string,
  make: () => string,
  options: Pick<KeyOptions, 'gid' | 'log'> = {},
): string {
  createOnce(path, make)
  closeToOthers(path, options)
  return readFileSync(path, 'utf8')
}

function newKey(): string {
  return `islet_${randomBytes(RANDOM_BYTES).toString('base64url')}`
}

function describe(key: string, path: string | undefined): AdminKey {
  const expected = Buffer.from(key)
  return {
    path,
    keyMatches: (candidate) => {
      // Always compares the same number of bytes; hashing first would cost ten times as much.
      const given = Buffer.alloc(expected.length)
      given.write(candidate)
      return timingSafeEqual(given, expected) && candidate.length === key.length
    },
    reveal: () => key,
  }
}

/** Atomic, and never replaces an existing key: writes a temporary file, syncs it, then links it. */
function createOnce(path: string, make: () => string): void {
  if (statSync(path, { throwIfNoEntry: false })) return
  const dataDir = dirname(path)
  const temporary = join(dataDir, `.${basename(path)}.${randomBytes(8).toString('hex')}`)
  try {
    const file = openSync(temporary, 'wx', 0o600)
    try {
      writeSync(file, make())
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    linkSync(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(temporary, { force: true })
  }
  const directory = openSync(dataDir, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

function closeToOthers(path: string, { gid, log }: Pick<KeyOptions, 'gid' | 'log'>): void {
  const { mode, uid, gid: owningGroup } = statSync(path)
  const wanted = gid === undefined ? 0o600 : 0o640
  if ((mode & 0o077 & ~wanted) !== 0) {
    const shown = { path, mode: (mode & 0o777).toString(8) }
    log?.warn(shown, `the key file was open to others; its mode is 0${wanted.toString(8)} again`)
  }
  if (gid !== undefined && owningGroup !== gid) {
    chmodSync(path, 0o600) // no group may read it while it changes hands
    chownSync(path, uid, gid)
  }
  chmodSync(path, wanted)
}

function checkText(key: string, where: string): string {
  if (key.length >= MIN_CONFIGURED_LENGTH && /^[\x21-\x7e]+$/.test(key)) return key
  throw new Error(
    `The key in ${where} is not usable: a key has at least ${MIN_CONFIGURED_LENGTH} visible ASCII characters.`,
  )
}
