import type { Islet, SandboxDetail } from 'islet'
import type { CheckpointInfo, Sandbox } from 'islet/opencomputer'
import type { TestServer } from '../../support/server.ts'

/** What the programs share. */
export interface World {
  server: TestServer
  islet: Islet
  /** Has GREETING=hello, and the file `base`. */
  sandbox: Sandbox
  /** A checkpoint of it. */
  base: CheckpointInfo
  given: { apiKey: string; apiUrl: string }
  recordOf(sandbox: Sandbox): Promise<SandboxDetail>
}

export const text = (bytes: Uint8Array[]) => Buffer.concat(bytes).toString()
