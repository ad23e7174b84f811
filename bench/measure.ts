// How a figure is taken: each sample is one operation timed by the monotonic clock; percentiles are of all samples.

export interface Samples {
  n: number
  p50: number
  p95: number
  p99: number
  min: number
  max: number
}

/** Milliseconds of each of n runs, one after another, after `warmup` runs that do not count. */
export async function sample(
  n: number,
  warmup: number,
  operation: (index: number) => Promise<void>,
): Promise<number[]> {
  for (let index = 0; index < warmup; index++) await operation(-1 - index)
  const times: number[] = []
  for (let index = 0; index < n; index++) {
    const started = performance.now()
    await operation(index)
    times.push(performance.now() - started)
  }
  return times
}

/** The same by `ways` callers at once, n runs in all. */
export async function sampleAtOnce(
  n: number,
  ways: number,
  operation: () => Promise<void>,
): Promise<number[]> {
  const times: number[] = []
  let left = n
  const caller = async () => {
    while (left-- > 0) {
      const started = performance.now()
      await operation()
      times.push(performance.now() - started)
    }
  }
  await Promise.all(Array.from({ length: ways }, caller))
  return times
}

export function summarise(times: readonly number[]): Samples {
  const sorted = [...times].sort((a, b) => a - b)
  const at = (fraction: number) =>
    round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? 0)
  return { n: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), min: at(0), max: at(1) }
}

export function round(value: number): number {
  return Math.round(value * 100) / 100
}
