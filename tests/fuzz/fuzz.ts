// Random inputs that can be had again: every run prints its seed, ISLET_TEST_SEED=n repeats it, and ISLET_TEST_MINUTES=n makes it longer.
// Inputs that were interesting once are kept in corpus/, one per file, and tried first in every run.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const { ISLET_TEST_MINUTES, ISLET_TEST_SEED } = process.env
export const SEED = ISLET_TEST_SEED ? Number(ISLET_TEST_SEED) : Math.floor(Math.random() * 2 ** 31)
/** Each of the four files has its share. */
const DURATION_MS = ISLET_TEST_MINUTES ? (Number(ISLET_TEST_MINUTES) * 60_000) / 4 : 4000
/** On a machine that is busy too. */
const LEAST_CASES = 10

/** Runs `work` again and again, `atOnce` of it together, until the time is over; answers with how often. `work` gets the number of the case. */
export async function repeatedly(work: (n: number) => Promise<void> | void, atOnce = 1): Promise<number> {
  const deadline = Date.now() + DURATION_MS
  let n = 0
  while (Date.now() < deadline || n < LEAST_CASES)
    await Promise.all(Array.from({ length: atOnce }, () => work(n++)))
  return n
}

export function corpus(name: string): Buffer[] {
  const directory = join(import.meta.dirname, 'corpus', name)
  return readdirSync(directory)
    .sort()
    .map((file) => readFileSync(join(directory, file)))
}

/** Characters and pieces that parsers of text trip over. */
const PIECES = [
  ...' "\'`\\\n\r\t$#=:;,.&%+?/*[]{}()<>!~|@^-_0aA',
  ...['\0', '\x7f', '\u0085', '\u2028', '\ufeff', 'é', '\ud800', '\udfff', '😀', '\u202e'],
  ...[
    '..',
    '../',
    '//',
    '\r\n',
    '\r\n\r\n',
    '%00',
    '%2e%2e',
    '%',
    '\\u0000',
    '\\n',
    '${',
    '$(',
    '/*',
    '<<EOF\n',
  ],
  ...[
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'null',
    'true',
    'NaN',
    'export ',
    'A=',
    '#!/bin/sh\n',
  ],
  ...['-1', '0', '1e999', '9007199254740993', '99999999999999999999', '0x10', '1.5'],
]

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  chance(part: number): boolean {
    return this.next() < part
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!
  }

  text(most = 20): string {
    return Array.from({ length: this.below(most) }, () => this.pick(PIECES)).join('')
  }

  /** A few bytes changed, added, doubled or cut off. */
  bytes(input: Uint8Array): Buffer {
    let bytes = Buffer.from(input)
    for (let changes = 1 + this.below(4); changes > 0; changes--) {
      const at = this.below(bytes.length + 1)
      const end = Math.min(bytes.length, at + this.below(40))
      const [before, between, after] = [bytes.subarray(0, at), bytes.subarray(at, end), bytes.subarray(end)]
      const changed = this.pick([
        () => [before, Buffer.from(between.map((byte) => byte ^ (1 << this.below(8)))), after],
        () => [before, Buffer.from(this.text(4)), between, after],
        () => [before, between, between, after],
        () => [before, after],
        () => [before, Buffer.alloc(between.length, this.pick([0, 0xff, 0x20, 0x30])), after],
        () => [before],
      ])()
      bytes = Buffer.concat(changed)
    }
    return bytes
  }
}
