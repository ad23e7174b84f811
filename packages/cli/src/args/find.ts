// Finds things by the text a user types: an id, an id prefix, or a name.
import { isId } from '@islet/contract/client'
import {
  type CheckpointInfo,
  hasCode,
  type Islet,
  type ProcessInfo,
  type Sandbox,
  type SessionTokenInfo,
  type SnapshotInfo,
} from '@islet/sdk'
import { connect } from '../connect.ts'
import { CliError, UsageError } from '../errors.ts'

/** Wraps an action: the first word names the sandbox that the action gets. */
export function withSandbox<Rest extends unknown[]>(
  work: (sandbox: Sandbox, ...rest: Rest) => Promise<void>,
): (text: string, ...rest: Rest) => Promise<void> {
  return async (text, ...rest) => work(await findSandbox(connect(), text), ...rest)
}

export async function findSandbox(islet: Islet, text: string): Promise<Sandbox> {
  try {
    return await islet.sandboxes.connect(text)
  } catch (error) {
    if (isId('sandbox', text) || !hasCode(error, 'sandbox_not_found')) throw error
    const all = await collect(islet.sandboxes.all())
    const found = only('sandboxes', text, all.filter(hasPrefix('sbx', text)))
    if (found) return islet.sandboxes.connect(found.id)
    throw new CliError('sandbox_not_found', `There is no sandbox ${text}.`, {
      hint: 'islet ls lists the sandboxes.',
    })
  }
}

export async function findSandboxId(islet: Islet, text: string): Promise<string> {
  return isId('sandbox', text) ? text : (await findSandbox(islet, text)).id
}

/** `text` may also be the pid of a running process in the sandbox. */
export async function findProcess(sandbox: Sandbox, text: string): Promise<ProcessInfo> {
  if (isId('process', text)) return sandbox.exec.get(text)
  const processes = await sandbox.exec.list({ limit: 1000 })
  const isMatch = /^\d+$/.test(text)
    ? ({ status, pid }: ProcessInfo) => status === 'running' && pid === Number(text)
    : hasPrefix('prc', text)
  const found = only('processes', text, processes.filter(isMatch))
  if (found) return found
  throw new CliError('process_not_found', `There is no process ${text} in ${sandbox.id}.`, {
    hint: `islet ps --all ${sandbox.id} lists the processes.`,
  })
}

export async function findSessionToken(
  { id, sessionTokens }: Sandbox,
  text: string,
): Promise<SessionTokenInfo> {
  const found = only('session tokens', text, (await sessionTokens.list()).filter(hasPrefix('tok', text)))
  if (found) return found
  throw new CliError('token_not_found', `There is no session token ${text} of ${id}.`, {
    hint: `islet token ls ${id} lists the session tokens.`,
  })
}

export async function findCheckpoint(islet: Islet, sandboxId: string, text: string): Promise<CheckpointInfo> {
  const all = await islet.checkpoints.list(sandboxId)
  const exact = all.find(({ id, name }) => name === text || id === text)
  const found = exact ?? only('checkpoints', text, text === '' ? [] : all.filter(hasPrefix('ckp', text)))
  if (found) return found
  const subject = isId('checkpoint', text) ? `${sandboxId} has no checkpoint` : 'There is no checkpoint'
  throw new CliError('checkpoint_not_found', `${subject} ${text}.`, {
    hint: `islet checkpoint ls ${sandboxId} lists the checkpoints.`,
  })
}

/** `text` may also be a tag. */
export async function findSnapshot(islet: Islet, text: string): Promise<SnapshotInfo> {
  try {
    return await islet.snapshots.get(text)
  } catch (error) {
    if (!hasCode(error, 'snapshot_not_found') || isId('snapshot', text) || text === '') throw error
    const isPrefix = hasPrefix('snp', text)
    const all = await collect(allSnapshots(islet))
    const matches = all.filter((snapshot) => snapshot.name === text || isPrefix(snapshot))
    const found = only('snapshots', text, matches)
    if (found) return found
    throw error
  }
}

/** Newest first. */
export async function* allSnapshots(islet: Islet): AsyncGenerator<SnapshotInfo> {
  for (let cursor: string | undefined; ; ) {
    const page = await islet.snapshots.list({ limit: 1000, cursor })
    yield* page.snapshots
    cursor = page.cursor
    if (cursor === undefined) return
  }
}

/** All items of a list that comes in pages. */
export async function collect<Item>(pages: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of pages) items.push(item)
  return items
}

function hasPrefix(kind: string, text: string): (item: { id: string }) => boolean {
  return ({ id }) => id.startsWith(text) || id.startsWith(`${kind}-${text}`)
}

/** The one match; undefined if there is none. Several are a usage error. */
function only<Item extends { id: string }>(kind: string, text: string, found: Item[]): Item | undefined {
  if (found.length < 2) return found[0]
  const ids = found.slice(0, 5).map(({ id }) => id)
  throw new UsageError(`${text} matches ${found.length} ${kind}.`, `Name one of them: ${ids.join(', ')}`)
}
