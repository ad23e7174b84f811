// Ids are DNS labels and URL-safe as they are: a prefix that says what it is, and 20 lower-case letters and digits.

export const ID_PREFIXES = {
  sandbox: 'sbx',
  process: 'prc',
  shell: 'shl',
  layer: 'lyr',
  request: 'req',
  terminal: 'trm',
  watcher: 'wtc',
  overlay: 'ovl',
  saved: 'sav',
  checkpoint: 'ckp',
  snapshot: 'snp',
  patch: 'pat',
} as const
export type IdKind = keyof typeof ID_PREFIXES

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz'
const RANDOM_CHARACTERS = 20

export function newId(kind: IdKind): string {
  // 252 is the largest multiple of 36 below 256: bytes at or above it would favour the first characters.
  let id = `${ID_PREFIXES[kind]}-`
  const wanted = id.length + RANDOM_CHARACTERS
  while (id.length < wanted) {
    for (const byte of crypto.getRandomValues(new Uint8Array(32))) {
      if (byte < 252 && id.length < wanted) id += ALPHABET[byte % 36]
    }
  }
  return id
}

export function isId(kind: IdKind, value: string): boolean {
  return idPattern(kind).test(value)
}

export function idPattern(kind: IdKind): RegExp {
  return new RegExp(`^${ID_PREFIXES[kind]}-[a-z0-9]{${RANDOM_CHARACTERS}}$`)
}
