// From values to places on an axis.
export interface Scale {
  (value: number): number
  /** Where the axis is marked. */
  ticks: number[]
}

/** Equal ratios are equal distances; the ends are rounded to 1, 2 or 5 times a power of ten. */
export function logScale(values: readonly number[], from: number, to: number): Scale {
  const positive = values.filter((value) => value > 0)
  const low = Math.min(...positive)
  const high = Math.max(...positive, low * 2)
  const steps = roundSteps(low, high)
  const [first, last] = [steps[0]!, steps.at(-1)!]
  const length = Math.log(last / first)
  const place = (value: number) => from + ((to - from) * Math.log(Math.max(value, first) / first)) / length
  const ticks = steps.length > 8 ? steps.filter((step) => isPowerOfTen(step)) : steps
  return Object.assign(place, { ticks })
}

/** From zero to a round number above all values. */
export function linearScale(values: readonly number[], from: number, to: number): Scale {
  const high = Math.max(...values, Number.MIN_VALUE)
  const rough = high / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough)!
  const count = Math.ceil(high / step - 1e-9)
  const ticks = Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(6)))
  return Object.assign((value: number) => from + ((to - from) * value) / (count * step), { ticks })
}

function roundSteps(low: number, high: number): number[] {
  const steps: number[] = []
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const factor of [1, 2, 5]) steps.push(Number((factor * 10 ** power).toPrecision(6)))
  const first = steps.findLastIndex((step) => step <= low)
  const last = steps.findIndex((step) => step >= high)
  return steps.slice(Math.max(first, 0), last + 1)
}

function isPowerOfTen(value: number): boolean {
  return Number.isInteger(Math.round(Math.log10(value) * 1e6) / 1e6)
}
