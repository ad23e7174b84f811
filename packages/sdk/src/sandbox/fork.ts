import type { CopySandbox, Forks, IsletError } from '@islet/contract/client'
import type { Client } from '../client/client.ts'
import { errorFromBody } from '../errors.ts'
import type { Abortable } from '../options.ts'
import { type FileToWrite, toFiles } from '../transport/files.ts'
import { Sandbox } from './sandbox.ts'

/** Missing options are taken from the source; `env` is merged. If the call is aborted, no fork remains. */
export interface ForkOptions extends Omit<CopySandbox, 'files'>, Abortable {
  /** Written in every fork; as of `sandboxes.create`. */
  files?: readonly FileToWrite[]
}

export type ForkResult = { ok: true; sandbox: Sandbox } | { ok: false; error: IsletError }

/** One result for each requested fork. */
export interface ForkResults extends Array<ForkResult> {
  /** How long the source was frozen. */
  frozenMs: number
  /** Whether the processes of the source continue in the forks. */
  memory: boolean
}

/** Each fork succeeds or fails by itself. */
export async function fork(
  client: Client,
  sandboxId: string,
  { signal, files, ...rest }: ForkOptions & { count: number },
): Promise<ForkResults> {
  const body = { ...rest, files: await toFiles(files, signal) }
  const { forks, ...frozen } = await client.call('forkSandbox', { params: { id: sandboxId }, body, signal })
  const toResult = (fork: Forks['forks'][number]): ForkResult =>
    fork.ok
      ? { ok: true, sandbox: new Sandbox(client, fork.sandbox) }
      : { ok: false, error: errorFromBody(fork.error) }
  return Object.assign(forks.map(toResult), frozen)
}
