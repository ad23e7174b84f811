// The shape of an answer, as plain data: the fields that a client relies on, and their types. The server checks everything else with
// the schemas.

export type Shape =
  | 'string'
  | 'number'
  | 'boolean'
  | 'any'
  | null
  | { is: string | number | boolean | null }
  | { optional: Shape }
  | { either: readonly Shape[] }
  | { list: Shape }
  | { map: Shape }
  | { fields: Readonly<Record<string, Shape>> }

/** Describes the first difference of `value`; undefined if there is none. Extra fields are allowed: the server may be newer. */
export function mismatch(shape: Shape, value: unknown, at = 'it'): string | undefined {
  if (shape === 'any') return value === undefined ? `${at} is missing` : undefined
  if (shape === null) return value === null ? undefined : `${at} is not null`
  if (typeof shape === 'string') return typeof value === shape ? undefined : `${at} is not a ${shape}`
  if ('is' in shape) return value === shape.is ? undefined : `${at} is not ${JSON.stringify(shape.is)}`
  if ('optional' in shape) return value === undefined ? undefined : mismatch(shape.optional, value, at)
  if ('either' in shape) {
    const problems = shape.either.map((one) => mismatch(one, value, at))
    return problems.includes(undefined) ? undefined : `${at} has none of its forms`
  }
  if ('list' in shape) {
    if (!Array.isArray(value)) return `${at} is not a list`
    return firstOf(value.entries(), ([index, item]) => mismatch(shape.list, item, `${at}[${index}]`))
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return `${at} is not an object`
  const entries = Object.entries('map' in shape ? value : shape.fields)
  return firstOf(entries, ([key]) => {
    const expected = 'map' in shape ? shape.map : shape.fields[key]!
    return mismatch(expected, (value as Record<string, unknown>)[key], `${at}.${key}`)
  })
}

function firstOf<T>(items: Iterable<T>, problemOf: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const problem = problemOf(item)
    if (problem !== undefined) return problem
  }
  return undefined
}
