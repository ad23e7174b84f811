/**
 * Runs the same work for many callers, one run at a time. Callers who ask during a run share the next one, so that every caller
 * gets a run that began after the call.
 */
export function coalesced(work: () => Promise<void>): () => Promise<void> {
  let running = Promise.resolve()
  let next: Promise<void> | undefined
  return () => {
    next ??= running
      .catch(() => {})
      .then(() => {
        next = undefined
        running = work()
        return running
      })
    return next
  }
}
