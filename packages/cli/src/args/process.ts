// A process as people name it: its id, the beginning of its id, or its pid in the sandbox.
import { isId } from '@islet/contract/client'
import type { ProcessInfo, Sandbox } from '@islet/sdk'
import { CliError, UsageError } from '../errors.ts'

export async function findProcess(sandbox: Sandbox, text: string): Promise<ProcessInfo> {
  if (isId('process', text)) return sandbox.exec.get(text)
  const processes = await sandbox.exec.list({ limit: 1000 })
  const found = processes.filter(({ id, pid, status }) =>
    /^\d+$/.test(text)
      ? status === 'running' && pid === Number(text)
      : id.startsWith(text) || id.startsWith(`prc-${text}`),
  )
  if (found.length === 1) return found[0]!
  if (found.length === 0) {
    throw new CliError('process_not_found', `There is no process ${text} in ${sandbox.id}.`, {
      hint: `islet ps --all ${sandbox.id} shows the ones there are.`,
    })
  }
  const ids = found.slice(0, 5).map(({ id }) => id)
  throw new UsageError(`${text} means ${found.length} processes.`, `Be exact: ${ids.join(', ')}`)
}
