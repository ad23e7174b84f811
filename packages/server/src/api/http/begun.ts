/** Waits for the first chunk, so that a failure before it is an ordinary error. */
export async function begun(source: AsyncIterable<Buffer>): Promise<AsyncIterable<Buffer>> {
  const rest = source[Symbol.asyncIterator]()
  const first = await rest.next()
  return (async function* () {
    try {
      for (let part = first; !part.done; part = await rest.next()) yield part.value
    } finally {
      await rest.return?.()
    }
  })()
}
