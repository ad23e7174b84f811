// git clone as argument lists. A name and password in the address reach git through its environment: they are not in an argument list, which
// other users of the machine can read, not in an error, and not in the clone, which ends up in snapshots.
import { bad } from './checks.ts'
import { shown } from './files/errors.ts'
import { CLONE_TIMEOUT_SECONDS, type GitClone, type SandboxRunResult } from './types.ts'

export interface ClonePlan {
  /** Run one after the other, the first in an empty directory. */
  commands: string[][]
  env: Record<string, string>
  timeoutSeconds: number
}

/** No helper programs (`ext::`), no questions on the terminal. */
const ENV = { GIT_ALLOW_PROTOCOL: 'https:http:ssh:git:file', GIT_TERMINAL_PROMPT: '0' }
const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/

export function planOf({ repo, ref, depth, timeoutSeconds = CLONE_TIMEOUT_SECONDS }: GitClone): ClonePlan {
  const { address, env } = withoutPassword(repo)
  const clone = ['git', 'clone', '--quiet']
  const checkout = ref === undefined ? [] : [['git', 'checkout', '--quiet', ref, '--']]
  const plan = (commands: string[][]) => ({ commands, env: { ...ENV, ...env }, timeoutSeconds })
  if (depth === undefined) return plan([[...clone, '--', address, '.'], ...checkout])
  const shallow = [...clone, `--depth=${depth}`]
  if (ref === undefined) return plan([[...shallow, '--', address, '.']])
  if (!COMMIT.test(ref)) return plan([[...shallow, `--branch=${ref}`, '--', address, '.']])
  const fetch = ['git', 'fetch', '--quiet', `--depth=${depth}`, 'origin', ref]
  return plan([[...shallow, '--no-checkout', '--', address, '.'], fetch, ...checkout])
}

/** Runs the commands of a plan; the first failure is an error with git's own last lines. */
export async function cloneWith(
  clone: GitClone,
  run: (argv: string[], plan: ClonePlan) => Promise<SandboxRunResult>,
): Promise<void> {
  const plan = planOf(clone)
  for (const argv of plan.commands) {
    const { exitCode, timedOut, output } = await run(argv, plan)
    if (exitCode === 0) continue
    const why = timedOut
      ? `took longer than ${plan.timeoutSeconds} s`
      : `failed: ${output.trim().slice(-1000)}`
    const repo = shown(withoutPassword(clone.repo).address)
    throw bad(`git clone of ${repo} into ${shown(clone.path)} ${why}`, 'Check its repo, path, ref and depth.')
  }
}

function withoutPassword(repo: string): { address: string; env: Record<string, string> } {
  const url = /^https?:/i.test(repo) && URL.canParse(repo) ? new URL(repo) : undefined
  if (!url || (url.username === '' && url.password === '')) return { address: repo, env: {} }
  const login = Buffer.from(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`)
  url.username = ''
  url.password = ''
  return {
    address: url.href,
    env: {
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: `http.${url.origin}/.extraHeader`,
      GIT_CONFIG_VALUE_0: `Authorization: Basic ${login.toString('base64')}`,
    },
  }
}
