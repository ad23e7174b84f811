// How a figure is taken: each sample is one operation timed by the monotonic clock; percentiles are of all samples that
// succeeded, and failures are counted separately.

export interface Samples {
  n: number
  failed: number
  p50: number
  p95: number
  p99: number
  min: number
  max: number
}

/** An operation that takes longer has failed: it must not keep the board from being printed. */
const LIMIT_MS = 120_000

/** How many failures of one figure are printed at once; all are counted. */
const SAID = 3

/** Every operation that failed in this process, in words. */
export const failures: string[] = []

/** The times of one figure. */
export class Tally {
  readonly #figure: string
  readonly times: number[] = []
  failed = 0

  constructor(figure: string) {
    this.#figure = figure
  }

  /** Runs and times one operation. A failure is printed and counted, and gives undefined. */
  async time<T>(operation: () => Promise<T>): Promise<T | undefined> {
    const started = performance.now()
    return this.attempt(async () => {
      const result = await operation()
      this.times.push(performance.now() - started)
      return result
    })
  }

  /** The same without a time. */
  async attempt<T>(operation: () => Promise<T>): Promise<T | undefined> {
    try {
      return await within(LIMIT_MS, operation())
    } catch (error) {
      this.fail(error)
      return undefined
    }
  }

  fail(error: unknown): void {
    this.failed++
    const [message] = String(error instanceof Error ? error.message : error).split('\n')
    failures.push(`${this.#figure}: ${message}`)
    if (this.failed <= SAID) console.error(`failed: ${this.#figure}:`, error)
  }

  summary(): Samples {
    return summarise(this.times, this.failed)
  }

  /** The percentage of n operations that succeeded. */
  successOf(n: number): number {
    return round(((n - this.failed) / n) * 100)
  }
}

/** n runs one after another, after `warmup` runs whose times do not count. */
export async function sample(
  figure: string,
  n: number,
  warmup: number,
  operation: (index: number) => Promise<unknown>,
): Promise<Tally> {
  const tally = new Tally(figure)
  for (let index = 0; index < warmup; index++) await tally.attempt(() => operation(-1 - index))
  for (let index = 0; index < n; index++) await tally.time(() => operation(index))
  return tally
}

/** The same by `ways` callers at once, n runs in all. */
export async function sampleAtOnce(
  figure: string,
  n: number,
  ways: number,
  operation: (way: number) => Promise<unknown>,
): Promise<Tally> {
  const tally = new Tally(figure)
  let left = n
  const caller = async (_: unknown, way: number) => {
    while (left-- > 0) await tally.time(() => operation(way))
  }
  await Promise.all(Array.from({ length: ways }, caller))
  return tally
}

export function summarise(times: readonly number[], failed = 0): Samples {
  const sorted = [...times].sort((a, b) => a - b)
  const at = (fraction: number) => round(percentile(sorted, fraction))
  return { n: sorted.length, failed, p50: at(0.5), p95: at(0.95), p99: at(0.99), min: at(0), max: at(1) }
}

/** The times at 0, 1 … 100 percent, for a plot of their distribution. */
export function curveOf(times: readonly number[]): number[] {
  const sorted = [...times].sort((a, b) => a - b)
  return Array.from({ length: 101 }, (_, index) => round(percentile(sorted, index / 100)))
}

/** The smallest of the sorted values that at least this fraction does not exceed; 0 if there are none. */
export function percentile(sorted: readonly number[], fraction: number): number {
  const rank = Math.max(1, Math.ceil(sorted.length * fraction))
  return sorted[rank - 1] ?? 0
}

export function median(values: readonly number[]): number {
  return percentile(
    [...values].sort((a, b) => a - b),
    0.5,
  )
}

export interface Line {
  slope: number
  intercept: number
  /** The standard error of the slope. */
  error: number
}

/** The line that least squares draw through the points. */
export function fit(points: readonly (readonly [x: number, y: number])[]): Line {
  const n = points.length
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / n
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / n
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  const slope = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread
  const intercept = meanY - slope * meanX
  const rest = points.reduce((sum, [x, y]) => sum + (y - intercept - slope * x) ** 2, 0)
  return { slope, intercept, error: n > 2 ? Math.sqrt(rest / (n - 2) / spread) : 0 }
}

export function round(value: number): number {
  return Math.round(value * 100) / 100
}

async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`not done after ${limitMs / 1000} s`)), limitMs)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
