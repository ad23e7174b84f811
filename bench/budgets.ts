// The budgets of the figures on two cores, and whether a run met them.
import { middle, type Row } from './figure.ts'
import { round, type Samples } from './measure.ts'

/** `docker` is the ratio to Docker's p50 in the same run; `value` is a figure that is one number. */
interface Budget {
  of: keyof Samples | 'value' | 'docker'
  atMost?: number
  atLeast?: number
}

export interface Verdict {
  /** As text: `p50 ≤ 60`. */
  budget: string
  held: boolean
}

export const BUDGETS: Record<string, Budget[]> = {
  'create-cold-first': [
    { of: 'p50', atMost: 60 },
    { of: 'docker', atMost: 1 / 5 },
  ],
  'create-warm-first': [
    { of: 'p50', atMost: 8 },
    { of: 'p99', atMost: 20 },
  ],
  'create-snapshot-first': [
    { of: 'p50', atMost: 8 },
    { of: 'p99', atMost: 20 },
  ],
  'create-packages-ratio': [{ of: 'value', atMost: 1.5 }],
  exec: [
    { of: 'p50', atMost: 2.5 },
    { of: 'p99', atMost: 8 },
    { of: 'docker', atMost: 1 / 20 },
  ],
  'first-byte': [{ of: 'p50', atMost: 3 }],
  'burst-warm-all': [
    { of: 'max', atMost: 600 },
    { of: 'failed', atMost: 0 },
  ],
  'burst-idle-all': [{ of: 'failed', atMost: 0 }],
  'burst-cold-all': [{ of: 'failed', atMost: 0 }],
  'checkpoint-frozen': [{ of: 'p50', atMost: 20 }],
  'fork-warm-first': [{ of: 'p50', atMost: 40 }],
  'fork-cold-first': [{ of: 'p50', atMost: 80 }],
  'memory-all-in': [{ of: 'value', atMost: 3 }],
  'file-up': [{ of: 'p50', atLeast: 500 }],
  'file-down': [{ of: 'p50', atLeast: 500 }],
  // "Flat": less than an eighth of the 256 MB that pass through.
  'file-memory': [{ of: 'value', atMost: 32 }],
  'store-get': [{ of: 'p50', atMost: 0.5 }],
  'store-set': [{ of: 'p50', atMost: 1.5 }],
}

/** The rows with their budgets. A budget relative to something that was not measured is left out. */
export function judged(rows: readonly Row[], budgets = BUDGETS): Row[] {
  return rows.map((row) => {
    const verdicts = (budgets[row.id] ?? []).flatMap((budget) => verdict(row, budget))
    return verdicts.length > 0 ? { ...row, budgets: verdicts } : row
  })
}

/** Budgets without a row: a missing measurement must not count as a budget that was met. */
export function unmeasured(rows: readonly Row[], budgets = BUDGETS): string[] {
  return Object.keys(budgets).filter((id) => !rows.some((row) => row.id === id))
}

function verdict(row: Row, { of, atMost = Infinity, atLeast = -Infinity }: Budget): Verdict[] {
  const value = measured(row, of)
  if (value === undefined) return []
  // If no operation succeeded, there is no time to judge.
  const isMeasured = of === 'failed' || typeof row.islet === 'number' || row.islet.n > 0
  return [{ budget: written(of, atMost, atLeast), held: isMeasured && value <= atMost && value >= atLeast }]
}

function measured(row: Row, of: Budget['of']): number | undefined {
  if (of === 'docker') return row.docker === undefined ? undefined : middle(row.islet) / middle(row.docker)
  if (typeof row.islet === 'number') return of === 'value' ? row.islet : undefined
  return of === 'value' ? undefined : row.islet[of]
}

function written(of: Budget['of'], atMost: number, atLeast: number): string {
  if (of === 'failed' && atMost === 0) return 'none fails'
  if (of === 'docker') return `≤ 1/${round(1 / atMost)} of Docker`
  const limit = atMost === Infinity ? `≥ ${atLeast}` : `≤ ${atMost}`
  return of === 'value' ? limit : `${of} ${limit}`
}
