import { IsletError } from './errors.ts'

/** The names of path parameters in error messages. */
const PARAMETERS: Record<string, string> = {
  id: 'the id of a sandbox',
  pid: 'the id of a process',
  tid: 'the id of a terminal',
  wid: 'the id of a watcher',
  oid: 'the id of an overlay',
  cid: 'the id of a checkpoint',
  patch: 'the id of a patch',
  sid: 'the id or tag of a snapshot',
}

/** The path with its parameters percent-encoded. A missing parameter is refused: the path would lead to another route. */
export function fillPath(name: string, path: string, params: Record<string, string>): string {
  return path.replace(/\{(\w+)\}/g, (_, key: string) => {
    const value: unknown = params[key]
    if (typeof value === 'string' && !['', '.', '..'].includes(value)) return encodeURIComponent(value)
    const given = typeof value === 'string' ? `'${value}'` : value === null ? 'null' : typeof value
    throw new IsletError(
      'bad_request',
      `${name} takes ${PARAMETERS[key] ?? `a ${key}`}; it was given ${given}.`,
      { details: { parameter: key } },
    )
  })
}
