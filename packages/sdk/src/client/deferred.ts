export interface Deferred<T> {
  promise: Promise<T>
  resolve(value: T): void
  reject(reason: unknown): void
}

/** Promise.withResolvers, which Node 20 lacks. */
export function deferred<T>(): Deferred<T> {
  const parts: Partial<Deferred<T>> = {}
  parts.promise = new Promise<T>((resolve, reject) => Object.assign(parts, { resolve, reject }))
  return parts as Deferred<T>
}
