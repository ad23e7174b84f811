/** Waits for the promise; rejects with the signal's reason if that aborts first. */
export async function untilAborted(promise: Promise<unknown>, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    await Promise.race([promise, aborted.promise])
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}
