// Memory of bytes that only pass through. V8 marks the whole heap each time some 25 MB more lie behind buffers, and a
// large file in pieces of 64 KB makes that happen every few hundred pieces: more work than all the copying. So whoever
// used a piece up says so, and its memory goes back at once.

/** Chunks of which each belongs to the reader. */
export interface Chunks<T extends Uint8Array = Uint8Array> extends AsyncIterable<T> {
  /** The chunk is used up: it is empty from now on. */
  release?(chunk: T): void
}

/** What a socket says of a write, at its end. */
export type Written = (error?: Error | null) => void

/** For the write of a chunk. What was broken off is left alone: of what comes with it, some may be with the kernel still. */
export function releasing<T extends Uint8Array>(body: Chunks<T>, chunk: T): Written | undefined {
  if (!body.release) return undefined
  return (error) => {
    if (!error) body.release?.(chunk)
  }
}

/** Less than this is not worth the call. */
const MIN_BYTES = 4 * 1024

/** Of memory that pieces share, how many bytes are not used up. */
const shared = new WeakMap<ArrayBufferLike, number>()

/** The chunk is handed out in pieces: its memory goes when each of its bytes was freed or used up, once. */
export function share(chunk: Uint8Array): void {
  const { buffer, length } = chunk
  if (length >= MIN_BYTES && length === buffer.byteLength) shared.set(buffer, length)
}

/** Frees the memory behind a chunk, unless something else may lie in it. */
export function free(chunk: Uint8Array): void {
  useUp(chunk.buffer, chunk.length)
}

/** Of a chunk that is shared, bytes that nobody was given. */
export function useUp(buffer: ArrayBufferLike, bytes: number): void {
  const before = shared.get(buffer)
  const left = (before ?? buffer.byteLength) - bytes
  if (left > 0) {
    if (before !== undefined) shared.set(buffer, left)
  } else if (buffer.byteLength >= MIN_BYTES && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
