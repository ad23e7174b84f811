/** What the source gives, and undefined each time it gives nothing for `ms`. */
export async function* beating<T>(source: AsyncIterable<T>, ms: number): AsyncGenerator<T | undefined> {
  const iterator = source[Symbol.asyncIterator]()
  let next: Promise<IteratorResult<T>> | undefined
  try {
    for (;;) {
      next ??= iterator.next()
      // A promise for each round: those that are raced hold on to what waits for them.
      const beat = Promise.withResolvers<undefined>()
      const timer = setTimeout(beat.resolve, ms)
      const got = await Promise.race([next, beat.promise]).finally(() => clearTimeout(timer))
      if (got?.done) return
      if (got) next = undefined
      yield got?.value
    }
  } finally {
    await iterator.return?.()
  }
}
