// An id is a prefix for its kind, a dash, and 20 lower-case letters and digits: a DNS label, and safe in URLs.

export const ID_PREFIXES = {
  sandbox: 'sbx',
  process: 'prc',
  cell: 'cel',
  layer: 'lyr',
  request: 'req',
  terminal: 'trm',
  watcher: 'wtc',
  overlay: 'ovl',
  saved: 'sav',
  checkpoint: 'ckp',
  snapshot: 'snp',
  patch: 'pat',
  sessionToken: 'tok',
} as const
export type IdKind = keyof typeof ID_PREFIXES

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz'
const RANDOM_CHARACTERS = 20

/** Random bytes are fetched in bulk, because a call costs more than the bytes. Each byte is used once. */
const random = new Uint8Array(1024)
let used = random.length

export function newId(kind: IdKind): string {
  let id = `${ID_PREFIXES[kind]}-`
  const wanted = id.length + RANDOM_CHARACTERS
  while (id.length < wanted) {
    if (used === random.length) {
      crypto.getRandomValues(random)
      used = 0
    }
    const byte = random[used++]!
    // 252 is the largest multiple of 36 below 256: bytes at or above it would favour the first characters.
    if (byte < 252) id += ALPHABET[byte % 36]
  }
  return id
}

export function isId(kind: IdKind, value: string): boolean {
  return idPattern(kind).test(value)
}

const patterns = new Map<IdKind, RegExp>()

export function idPattern(kind: IdKind): RegExp {
  let pattern = patterns.get(kind)
  if (!pattern) {
    pattern = new RegExp(`^${ID_PREFIXES[kind]}-[a-z0-9]{${RANDOM_CHARACTERS}}$`)
    patterns.set(kind, pattern)
  }
  return pattern
}
