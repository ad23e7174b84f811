// Which paths of this machine may be imported: only those below directories that its operator allows. The API key gives access to
// sandboxes, not to the machine.
import { constants } from 'node:fs'
import { type FileHandle, open, readlink, realpath } from 'node:fs/promises'
import { IsletError } from '@islet/contract'

interface OpenedSource extends AsyncDisposable {
  /** A path to the opened file that stays valid when its original path changes. */
  at: string
}

/** Throws `forbidden` for a path outside of `dirs`, also if it leads outside through symlinks. */
export async function openSource(path: string, dirs: readonly string[]): Promise<OpenedSource> {
  const real = await realpath(path).catch(() => path)
  const allowed = await Promise.all(dirs.map((dir) => realpath(dir).catch(() => dir)))
  if (!isBelow(real, allowed)) throw notAllowed(path)
  const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  )
  if (!handle) throw new IsletError('file_not_found', `There is no ${path} on the server.`)
  const at = `/proc/${process.pid}/fd/${handle.fd}`
  // A directory of the path may have been replaced by a symlink meanwhile.
  if (!isBelow(await placeOf(handle), allowed)) {
    await handle.close()
    throw notAllowed(path)
  }
  return { at, [Symbol.asyncDispose]: () => handle.close() }
}

const placeOf = (handle: FileHandle): Promise<string> => readlink(`/proc/self/fd/${handle.fd}`)

const isBelow = (path: string, dirs: readonly string[]): boolean =>
  dirs.some((dir) => path === dir || path.startsWith(dir === '/' ? '/' : `${dir}/`))

function notAllowed(path: string): IsletError {
  return new IsletError('forbidden', `${path} is not in a directory that this server imports from.`, {
    hint: 'Upload it: islet image import PATH --name NAME. Or name its directory in ISLET_IMPORT_DIRS of the server.',
  })
}
