// A caller's command as the guest needs it: program, directory, user, environment.
import { availableParallelism } from 'node:os'
import { posix } from 'node:path'
import type { ExecParsed } from '@islet/contract'
import type { RunningSandbox } from '../../control/fleet.ts'
import type { SpawnSpec } from '../../guest/guest.ts'

const CORES = availableParallelism()
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** The guest adds HOME, USER, LOGNAME and SHELL of the user where they are missing. */
export function toSpawn(
  id: string,
  input: Pick<ExecParsed, 'command' | 'cwd' | 'env' | 'user' | 'timeout'>,
  { record: sandbox, machine }: RunningSandbox,
): Omit<SpawnSpec, 'stdin'> {
  const env = {
    PATH,
    LANG: 'C.UTF-8',
    TERM: 'xterm-256color',
    ISLET_SANDBOX_ID: sandbox.id,
    ...threads(sandbox.resources),
    ...machine.env,
    ...sandbox.env,
    ...input.env,
  }
  return {
    id,
    argv: typeof input.command === 'string' ? ['/bin/sh', '-c', input.command] : input.command,
    env: { ...env, PATH: withDirectory(env.PATH, machine.cell.insideDir) },
    ...placeOf(input, sandbox),
    timeoutMs: input.timeout,
  }
}

/**
 * A CPU limit is a share of the time of all cores, so programs that count cores would start too many threads. `nproc` and
 * programs with OpenMP obey this variable.
 */
function threads({ cpuMillis }: RunningSandbox['record']['resources']): Record<string, string> {
  const count = Math.ceil(cpuMillis / 1000)
  return count < CORES ? { OMP_NUM_THREADS: String(count) } : {}
}

/** The directory and user of a command. */
export function placeOf(
  input: Pick<ExecParsed, 'cwd' | 'user'>,
  sandbox: Pick<RunningSandbox['record'], 'workdir' | 'user'>,
): { cwd: string; user: string } {
  return { cwd: posix.resolve(sandbox.workdir, input.cwd ?? ''), user: input.user ?? sandbox.user }
}

/** Appended, so that it shadows nothing: Islet's programs are found with any PATH. */
function withDirectory(path: string, directory: string): string {
  if (path === '') return directory
  return path.split(':').includes(directory) ? path : `${path}:${directory}`
}
