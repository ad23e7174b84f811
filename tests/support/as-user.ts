// A program run as another user of the machine, who finds a server's data directory where that of root's server is.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cleanEnv, root } from './server.ts'

export interface AsUser {
  uid: number
  groups: readonly number[]
  /** Seen at /var/lib/islet. */
  dataDir: string
  env?: Record<string, string>
}

/** In a mount namespace of its own: this tree may lie where that user cannot go. */
export function asUser(
  [program = '', ...args]: readonly string[],
  { uid, groups, dataDir, env = {} }: AsUser,
): Promise<{ stdout: string; stderr: string }> {
  const tree = '/var/lib/tree'
  const moved = (path: string) => (path.startsWith(root) ? join(tree, path.slice(root.length)) : path)
  const script = `set -e
    mount -t tmpfs -o mode=755 none /var/lib
    mkdir /var/lib/islet ${tree}
    mount --rbind "$DATA" /var/lib/islet
    mount --rbind "$TREE" ${tree}
    exec setpriv --reuid ${uid} --regid ${uid} ${groups.length ? `--groups ${groups}` : '--clear-groups'} "$@"`
  return promisify(execFile)(
    'unshare',
    ['--mount', 'sh', '-c', script, 'sh', moved(program), ...args.map(moved)],
    {
      cwd: '/',
      env: { ...cleanEnv(), HOME: '/nowhere', USER: 'somebody', ...env, DATA: dataDir, TREE: root },
    },
  )
}
