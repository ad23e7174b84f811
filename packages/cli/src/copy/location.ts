// One side of a copy: SANDBOX:PATH, a local path, or - for stdin and stdout.
import { UsageError } from '../errors.ts'

export type Location =
  | { kind: 'local'; path: string }
  | { kind: 'remote'; sandbox: string; path: string }
  | { kind: 'stdio' }

export function parseLocation(text: string): Location {
  if (text === '-') return { kind: 'stdio' }
  if (text === '') throw new UsageError('A path is empty.', 'islet cp --help')
  const colon = text.indexOf(':')
  const slash = text.indexOf('/')
  // ./a:b and /a:b are local paths.
  if (colon < 1 || (slash >= 0 && slash < colon)) return { kind: 'local', path: text }
  return { kind: 'remote', sandbox: text.slice(0, colon), path: text.slice(colon + 1) || '.' }
}

/** Of --file. A relative path in the sandbox is below `cwd`, or else below its working directory. */
export function toFiles(texts: readonly string[] = [], cwd?: string): FileToCopy[] {
  return texts.map((text) => {
    const { local, remote } = parseFileFlag(text)
    const isBelow = cwd !== undefined && !remote.startsWith('/')
    return { local, remote: isBelow ? joinPath(cwd, remote) : remote }
  })
}

interface FileToCopy {
  local: string
  remote: string
}

function parseFileFlag(text: string): FileToCopy {
  const colon = text.lastIndexOf(':')
  const local = text.slice(0, colon)
  const remote = text.slice(colon + 1)
  if (colon < 1 || remote === '')
    throw new UsageError(`${text} is not LOCAL:REMOTE.`, '--file ./a.py:/tmp/a.py')
  return { local, remote }
}

/** The last part of a path; empty for `.`, `..` and `/`. */
export function baseName(path: string): string {
  const last = path.replace(/\/+$/, '').split('/').at(-1) ?? ''
  return last === '.' || last === '..' ? '' : last
}

export function joinPath(directory: string, name: string): string {
  return name === '' ? directory : `${directory.replace(/\/+$/, '')}/${name}`
}
