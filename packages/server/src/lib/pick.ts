/** A copy with only these keys, in their order. */
export function pick<From, Key extends keyof From>(from: From, keys: readonly Key[]): Pick<From, Key> {
  return Object.fromEntries(keys.map((key) => [key, from[key]])) as Pick<From, Key>
}
