// Long work as lines: its progress, then its result.
import type { IncomingHttpHeaders } from 'node:http'
import type { Progress } from '../image/image.ts'
import { Lines } from './route.ts'

type OnProgress = (progress: Progress) => void

/** The last line is `{ type: 'done', … }` with the result under its name. */
export function progressLines<Name extends string, Result>(
  name: Name,
  work: (onProgress: OnProgress) => Promise<Result>,
): Lines<unknown> {
  return new Lines(async (emit) => {
    const result = await work((progress) => emit({ type: 'progress', ...progress }))
    emit({ type: 'done', [name]: result })
  })
}

/** For routes with `progress`: lines if the client asks for them, else the result alone. */
export function progressing<Name extends string, Result>(
  { accept = '' }: IncomingHttpHeaders,
  name: Name,
  work: (onProgress?: OnProgress) => Promise<Result>,
): Lines<unknown> | Promise<Result> {
  return /\bapplication\/x-ndjson\b/i.test(accept) ? progressLines(name, work) : work()
}
