// Random values that are shown once and kept as a hash. 256 random bits cannot be guessed, so one round of SHA-256 is enough; and because
// only hashes are looked up, how long that takes says nothing about a value.
import { hash, randomBytes } from 'node:crypto'

/** Longer ones are refused before they are hashed. */
const MAX_LENGTH = 128

export function newSecret(prefix = ''): string {
  return prefix + randomBytes(32).toString('base64url')
}

/** As hex; of a value that cannot be ours, the empty text. */
export function hashOf(value: string): string {
  return value.length > MAX_LENGTH ? '' : hash('sha256', value)
}
