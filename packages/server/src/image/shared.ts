// Concurrent callers with the same key share one run of the work. It is cancelled when the last caller has cancelled.
import type { Progress } from './image.ts'

interface Watcher {
  onProgress?: ((progress: Progress) => void) | undefined
  signal?: AbortSignal | undefined
}

export type Work<T> = (watcher: {
  onProgress: (progress: Progress) => void
  signal: AbortSignal
}) => Promise<T>

interface Flight<T> {
  watchers: Set<Watcher>
  last: Progress | undefined
  abort: AbortController
  done: Promise<T>
}

export function createShared<T>(): (key: string, watcher: Watcher, work: Work<T>) => Promise<T> {
  const flights = new Map<string, Flight<T>>()

  function begin(key: string, work: Work<T>): Flight<T> {
    const abort = new AbortController()
    const watchers = new Set<Watcher>()
    const flight: Flight<T> = {
      watchers,
      last: undefined,
      abort,
      done: Promise.resolve().then(start).finally(end),
    }
    function start(): Promise<T> {
      return work({ onProgress: tell, signal: abort.signal })
    }
    function tell(progress: Progress): void {
      flight.last = progress
      for (const each of watchers) each.onProgress?.(progress)
    }
    function end(): void {
      if (flights.get(key) === flight) flights.delete(key)
    }
    flights.set(key, flight)
    return flight
  }

  return async (key, watcher, work) => {
    const { signal } = watcher
    signal?.throwIfAborted()
    const flight = flights.get(key) ?? begin(key, work)
    flight.watchers.add(watcher)
    if (flight.last) watcher.onProgress?.(flight.last)
    const cancelled = Promise.withResolvers<never>()
    const leave = () => {
      flight.watchers.delete(watcher)
      if (flight.watchers.size === 0) {
        // A later caller starts a new run; this caller is answered after the cleanup.
        if (flights.get(key) === flight) flights.delete(key)
        flight.abort.abort(signal?.reason)
        flight.done.then(
          () => cancelled.reject(signal?.reason),
          () => cancelled.reject(signal?.reason),
        )
      } else cancelled.reject(signal?.reason)
    }
    signal?.addEventListener('abort', leave, { once: true })
    try {
      return await Promise.race([flight.done.finally(() => signal?.throwIfAborted()), cancelled.promise])
    } finally {
      signal?.removeEventListener('abort', leave)
      flight.watchers.delete(watcher)
    }
  }
}
