// Parsers for sizes, CPU shares and durations as people write them. Undefined: not valid.

const DURATION_UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const SIZE_UNITS: Record<string, number> = {
  '': 1,
  k: 1e3,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
}

/** Milliseconds from a number of them or `'250ms'`, `'30s'`, `'10m'`, `'24h'`, `'7d'`. */
export function parseDurationMs(value: number | string): number | undefined {
  if (typeof value === 'number') return finiteInteger(value)
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value.trim())
  return match ? finiteInteger(Number(match[1]) * DURATION_UNITS[match[2]!]!) : undefined
}

/** Bytes from a number of them or `'256Mi'`, `'1Gi'`, `'500M'`. */
export function parseSizeBytes(value: number | string): number | undefined {
  if (typeof value === 'number') return finiteInteger(value)
  const match = /^(\d+(?:\.\d+)?)\s*([kKMGT]i?|)B?$/.exec(value.trim())
  const unit = match && SIZE_UNITS[match[2]!]
  return unit ? finiteInteger(Number(match[1]) * unit) : undefined
}

/** Thousandths of a core from a number of cores or `'500m'`, `'1.5'`. */
export function parseCpuMillis(value: number | string): number | undefined {
  if (typeof value === 'number') return finiteInteger(value * 1000)
  const match = /^(\d+(?:\.\d+)?)(m?)$/.exec(value.trim())
  return match ? finiteInteger(Number(match[1]) * (match[2] ? 1 : 1000)) : undefined
}

/** A size in the form that `parseSizeBytes` reads, rounded down: `1.5Gi`. */
export function formatSize(bytes: number): string {
  const units = ['', 'Ki', 'Mi', 'Gi', 'Ti']
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${Math.floor(value * 10) / 10}${units[unit]}`
}

export function formatCores(millis: number): string {
  return `${millis / 1000} ${millis === 1000 ? 'core' : 'cores'}`
}

function finiteInteger(value: number): number | undefined {
  const rounded = Math.round(value)
  return Number.isSafeInteger(rounded) && rounded >= 0 ? rounded : undefined
}
