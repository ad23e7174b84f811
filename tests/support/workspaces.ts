// For tests of SandboxAgent: its workspaces are made in a directory of the test file, which must be empty at the end.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { SandboxAgent, type SandboxAgentConfig } from '@islet/dialects/agentium'

/** For other files of the test. */
export const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'islet-agentium-')))
const workspaces = join(scratch, 'workspaces')
mkdirSync(workspaces)
process.env.TMPDIR = workspaces
after(() => {
  assert.deepEqual(workspacesThere(), [])
  rmSync(scratch, { recursive: true })
})

export function workspacesThere(): string[] {
  const names = readdirSync(workspaces).filter((name) => name.startsWith('agentium-'))
  return names.map((name) => join(workspaces, name))
}

export async function started(config: SandboxAgentConfig = {}): Promise<SandboxAgent> {
  const agent = new SandboxAgent(config)
  await agent.start()
  return agent
}
