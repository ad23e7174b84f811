// Memory of bytes that only pass through. V8 marks the whole heap each time buffers have grown by some 16 MB, and a large file
// in pieces of 64 KB makes that happen every few hundred pieces: more work than all the copying. So a reader that is done with a
// piece frees it, and its memory goes back at once.
//
// A freed chunk has the length 0. Take its length before you hand it on, or from what `free` returns.

/** Each chunk belongs to the reader. */
export interface Chunks<T extends Uint8Array = Uint8Array> extends AsyncIterable<T> {
  /** The reader is done with the chunk: it is empty from now on. */
  release?(chunk: T): void
}

/** The callback of a socket's write. */
export type Written = (error?: Error | null) => void

/** Releases a chunk once it is written. After a failed write it stays: the kernel may still hold chunks of the same write. */
export function releasing<T extends Uint8Array>(body: Chunks<T>, chunk: T): Written | undefined {
  if (!body.release) return undefined
  return (error) => {
    if (!error) body.release?.(chunk)
  }
}

/** A body of one chunk. */
export async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** Less than this is not worth the call. */
const MIN_BYTES = 4 * 1024

/** Buffers that were handed out in pieces, and how many of their bytes are still in use. */
const shared = new WeakMap<ArrayBufferLike, number>()

/** The chunk is handed out in pieces: its memory goes once each of its bytes was freed or used up. */
export function share(chunk: Uint8Array): void {
  const { buffer, length } = chunk
  if (length >= MIN_BYTES && length === buffer.byteLength) shared.set(buffer, length)
}

/** Frees the memory behind a chunk, unless something else may lie in it. Returns the length that the chunk had. */
export function free(chunk: Uint8Array): number {
  const { length } = chunk
  useUp(chunk.buffer, length)
  return length
}

/** Counts bytes of a shared chunk that nobody was given, such as headers. */
export function useUp(buffer: ArrayBufferLike, bytes: number): void {
  const before = shared.get(buffer)
  const left = (before ?? buffer.byteLength) - bytes
  if (left > 0) {
    if (before !== undefined) shared.set(buffer, left)
  } else if (buffer.byteLength >= MIN_BYTES && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
