// For tests of SandboxAgent: its workspaces are made in a directory of the test file, in which none may be left.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { SandboxAgent, type SandboxAgentConfig } from '@islet/dialects/agentium'

export interface Workspaces {
  /** For other files of the test. */
  scratch: string
  /** The workspaces that exist. */
  list(): string[]
}

/** `const { scratch, list } = ownWorkspaces()` at the top of a file. Servers of the file are started before. */
export function ownWorkspaces(): Workspaces {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'islet-agentium-')))
  const directory = join(scratch, 'workspaces')
  const list = () => readdirSync(directory).filter((name) => name.startsWith('agentium-'))
  mkdirSync(directory)
  process.env.TMPDIR = directory
  after(() => {
    assert.deepEqual(list(), [])
    rmSync(scratch, { recursive: true })
  })
  return { scratch, list: () => list().map((name) => join(directory, name)) }
}

export async function started(config: SandboxAgentConfig = {}): Promise<SandboxAgent> {
  const agent = new SandboxAgent(config)
  await agent.start()
  return agent
}
