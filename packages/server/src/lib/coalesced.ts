/**
 * The same work for many: who asks while it runs gets the next run, together with all others who do. Each run begins after
 * everybody who waits for it has asked, and there is never more than one.
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
