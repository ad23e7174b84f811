/** The same, once its first part is there: what fails before that is an ordinary error. */
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
