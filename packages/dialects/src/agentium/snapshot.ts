// A snapshot comes from wherever the caller kept it, perhaps from other software: it is checked completely before anything is changed.
import { IsletError } from '@islet/sdk'
import { bad, checkContents, checkEnv, checkPath } from './checks.ts'
import { shown } from './files/errors.ts'
import type { SnapshotFile, WorkspaceSnapshot } from './types.ts'

const VERSION = 1
const TYPES = ['file', 'directory', 'symlink']

export function snapshotOf(
  { files, snapshotId }: Pick<WorkspaceSnapshot, 'files' | 'snapshotId'>,
  env: Record<string, string>,
): WorkspaceSnapshot {
  const id = snapshotId === undefined ? {} : { snapshotId }
  return { version: VERSION, takenAt: Date.now(), files, env: { ...env }, ...id }
}

/** Unknown fields are left alone; the vendor's plain JSON has no `version`, `mode`, `type` and `target`. */
export function checkSnapshot(snapshot: WorkspaceSnapshot): void {
  if (typeof snapshot !== 'object' || snapshot === null || !Array.isArray(snapshot.files))
    throw bad(
      'This is not a snapshot of a workspace.',
      'resume takes what snapshot() returned, parsed from JSON.',
    )
  if (snapshot.version !== undefined && snapshot.version !== VERSION)
    throw new IsletError(
      'not_supported',
      `The snapshot has version ${snapshot.version}; this program reads 1.`,
    )
  if (snapshot.snapshotId !== undefined && typeof snapshot.snapshotId !== 'string')
    throw bad('The snapshotId of the snapshot must be text.')
  checkEnv('env of the snapshot', snapshot.env)
  const types = new Map<string, string>()
  for (const file of snapshot.files) {
    const type = checkFile(file)
    if (types.has(file.path)) throw bad(`The snapshot has ${shown(file.path)} twice.`)
    types.set(file.path, type)
  }
  for (const path of types.keys()) checkParents(path, types)
}

function checkFile(file: SnapshotFile): string {
  if (typeof file !== 'object' || file === null) throw bad('A file of the snapshot must be an object.')
  const { path, contents, encoding, mode, type = 'file', target } = file
  checkPath(path)
  if (path.split('/').some((name) => ['', '.', '..'].includes(name)))
    throw new IsletError('invalid_path', `${shown(path)} in the snapshot is not a plain relative path.`)
  if (!TYPES.includes(type)) throw bad(`${shown(path)} in the snapshot has an unknown type.`)
  checkContents(`${shown(path)} in the snapshot`, contents, encoding)
  if (mode !== undefined && !(Number.isInteger(mode) && mode >= 0 && mode <= 0o777))
    throw bad(`The mode of ${shown(path)} in the snapshot must be permission bits, at most 0o777.`)
  if (type === 'symlink') checkPath(target)
  return type
}

function checkParents(path: string, types: ReadonlyMap<string, string>): void {
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
    const parent = path.slice(0, end)
    if ((types.get(parent) ?? 'directory') !== 'directory')
      throw bad(`${shown(path)} in the snapshot lies below ${shown(parent)}, which is not a directory.`)
  }
}
