// The counters of a soak.

export interface Counts {
  acknowledged: number
  cutOff: number
  refused: number
}

export type KillKind = 'server' | 'server while it starts' | 'warden' | 'guest'

export class Tally {
  readonly operations = new Map<string, Counts>()
  readonly refusals = new Map<string, number>()
  readonly kills = new Map<KillKind, number>()
  /** From a kill of the server or its warden to an answer: of /health, and of a command in a sandbox that lived. */
  readonly recovery = { healthMs: [] as number[], execMs: [] as number[] }
  /** Memory of the server. `old`: in a life of a minute or more, at its end. */
  readonly rssBytes = { fresh: [] as number[], all: [] as number[], old: [] as number[] }
  diskFull = 0
  clockJumps = 0
  steps = 0
  /** Lines of the server's log that are errors, by their message. */
  readonly errors = new Map<string, number>()

  of(kind: string): Counts {
    const counts = this.operations.get(kind) ?? { acknowledged: 0, cutOff: 0, refused: 0 }
    this.operations.set(kind, counts)
    return counts
  }

  refused(kind: string, code: string): void {
    this.of(kind).refused++
    count(this.refusals, code)
  }

  killed(kind: KillKind): void {
    count(this.kills, kind)
  }

  get totalKills(): number {
    return [...this.kills.values()].reduce((sum, each) => sum + each, 0)
  }

  total(what: keyof Counts): number {
    return [...this.operations.values()].reduce((sum, counts) => sum + counts[what], 0)
  }

  /** The output of a server until its end. */
  keepErrors(output: string): void {
    for (const line of output.split('\n')) {
      const message = /"level":(?:50|60|"error"|"fatal").*"msg":"([^"]*)"/.exec(line)?.[1]
      if (message) count(this.errors, message)
    }
  }
}

export function quantile(values: readonly number[], part: number): number | undefined {
  if (values.length === 0) return undefined
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]
}

function count<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
