// Calls that answer with a line for each step of long work, and at last with its result or error.
import type { ImageProgress, RouteName, Shape } from '@islet/contract/client'
import { ClientError, errorFromBody } from '../errors.ts'
import { checked } from './checked.ts'
import type { CallOptions, Client } from './client.ts'

export type Step = Extract<ImageProgress, { type: 'progress' }>

export interface Progressing {
  /** Called for each step of making a runtime or installing packages; not at all if everything is ready. */
  onProgress?(step: Step): void
}

type Told<Result> = Step | ({ type: 'done' } & Result)
type Line<Result> = Told<Result> | Extract<ImageProgress, { type: 'error' }>

export async function work<Result extends object>(
  client: Client,
  name: RouteName,
  options: CallOptions & Progressing,
  shape: Shape,
): Promise<Result> {
  for await (const line of steps<Result>(client, name, options, shape)) {
    if (line.type === 'done') return line
    options.onProgress?.(line)
  }
  throw new ClientError('bad_response', 'The answer ended before the work was done.')
}

export async function* steps<Result extends object>(
  client: Client,
  name: RouteName,
  { onProgress: _, ...options }: CallOptions & Progressing,
  shape: Shape,
): AsyncGenerator<Told<Result>> {
  const headers = { ...options.headers, Accept: 'application/x-ndjson' }
  for await (const value of client.lines(name, { ...options, headers })) {
    const line = checked<Line<Result>>(shape, value, 'A progress line')
    if (line.type === 'error') throw errorFromBody(line.error)
    yield line as Told<Result>
  }
}
