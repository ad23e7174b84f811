// The content that callers may send, and how it becomes the body of a request. Streams are not buffered, except in browsers, which
// cannot stream a request over HTTP/1.1.
import type { Answer, Explain } from './transport.ts'

export type Content =
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array | string>

export async function toBody(content: Content): Promise<{ body: BodyInit; duplex?: 'half' }> {
  if (typeof content === 'string' || content instanceof Blob || content instanceof ArrayBuffer) {
    return { body: content }
  }
  if (content instanceof Uint8Array) return { body: content as Uint8Array<ArrayBuffer> }
  const stream = content instanceof ReadableStream ? content : streamOf(content)
  if (typeof document !== 'undefined') return { body: await new Response(stream).blob() }
  return { body: stream, duplex: 'half' }
}

/** Whether the same content can be sent a second time. */
export function isReplayable(content: Content): boolean {
  return (
    typeof content === 'string' ||
    content instanceof Uint8Array ||
    content instanceof ArrayBuffer ||
    content instanceof Blob
  )
}

export function base64(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000))
  }
  return btoa(text)
}

/** The bytes of base64. */
export function bytesOf(text: string): Uint8Array {
  // Where there is a Buffer it takes a tenth of the time. Not the global by its name, for which bundlers add one.
  const { Buffer } = globalThis as { Buffer?: { from(text: string, encoding: string): Uint8Array } }
  const found = Buffer?.from(text, 'base64')
  if (found) return new Uint8Array(found.buffer, found.byteOffset, found.length)
  const decoded = atob(text)
  const bytes = new Uint8Array(decoded.length)
  for (let at = 0; at < decoded.length; at++) bytes[at] = decoded.charCodeAt(at)
  return bytes
}

/** The body of an answer. Errors go through `explain`. */
export function relay(answer: Answer, explain: Explain): ReadableStream<Uint8Array> {
  if (answer.stream) return answer.stream(explain)
  const reader = answer.body?.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = (await reader?.read()) ?? { done: true }
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          controller.error(explain(error))
        }
      },
      cancel: (reason) => reader?.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

export function streamOf(source: AsyncIterable<Uint8Array | string>): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value)
    },
    async cancel(reason) {
      // The iterator of a Node stream returns only after its next chunk, which may never come.
      ;(source as { destroy?(): void }).destroy?.()
      await iterator.return?.(reason)
    },
  })
}
