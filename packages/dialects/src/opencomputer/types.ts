// Options and results of the sandbox as a whole, and how our records become theirs.
import type * as islet from '@islet/sdk'

export interface ConnectionOpts {
  /** Default: ISLET_API_KEY, else the key file of this machine. */
  apiKey?: string
  /** The URL of the Islet server. Default: ISLET_URL, else the server of this machine. */
  apiUrl?: string
}

export interface SandboxOpts extends ConnectionOpts {
  /** The name of a runtime. Default: base. */
  template?: string
  /** Seconds without use until the sandbox hibernates; 0: never. Default: 300. */
  timeout?: number
  envs?: Record<string, string>
  metadata?: Record<string, string>
  /** At most 4. */
  cpuCount?: number
  /** At most 2048. */
  memoryMB?: number
  /** Only here: whether the sandbox reaches the internet. Default: true. */
  network?: boolean
}

export interface FromCheckpointOpts extends ConnectionOpts {
  /** Seconds without use until the sandbox hibernates; 0: never. Default: 300. */
  timeout?: number
  envs?: Record<string, string>
}

export interface PatchOpts extends ConnectionOpts {
  /** Run by bash, once in every sandbox made from the checkpoint. */
  script: string
  description?: string
}

export interface PreviewURLOpts {
  /** 1 to 65535. */
  port: number
  domain?: string
  /** `{}`: open. `{ type: 'token', token? }`, or `{ scheme: 'bearer', token? }`: visitors need the token. */
  authConfig?: Record<string, unknown>
}

export interface CheckpointInfo {
  id: string
  sandboxId: string
  name: string
  /** A checkpoint is complete when `createCheckpoint` resolves. */
  status: 'ready'
  /** Null until it is measured. */
  sizeBytes: number | null
  createdAt: string
}

export interface PatchInfo {
  id: string
  checkpointId: string
  /** Patches are applied in this order. */
  sequence: number
  script: string
  description: string
  /** Applied when a sandbox is made from the checkpoint, and when such a sandbox wakes. */
  strategy: 'on_wake'
  createdAt: string
}

export interface PatchResult {
  patch: PatchInfo
}

export interface PreviewURLResult {
  id: string
  sandboxId: string
  url: string
  /** With the port, if the URL has one. */
  hostname: string
  customHostname?: string
  port: number
  sslStatus: 'active' | 'none'
  authConfig: Record<string, unknown>
  /** What visitors send. Only in the answer to the call that set it. */
  token?: string
  createdAt: string
}

export function toCheckpoint(info: islet.CheckpointInfo): CheckpointInfo {
  const { id, sandboxId, name, sizeBytes, createdAt } = info
  return { id, sandboxId, name, status: 'ready', sizeBytes, createdAt }
}

export function toPatch({ description, ...rest }: islet.PatchInfo): PatchInfo {
  return { ...rest, description: description ?? '', strategy: 'on_wake' }
}

export function toPreview(preview: islet.Preview): PreviewURLResult {
  const { sandboxId, port, url, domain, authConfig, token, createdAt } = preview
  const { host, protocol } = new URL(url)
  return {
    id: `${sandboxId}-p${port}`,
    sandboxId,
    url,
    hostname: host,
    ...(domain !== undefined && { customHostname: domain }),
    port,
    sslStatus: protocol === 'https:' ? 'active' : 'none',
    authConfig: authConfig ?? {},
    ...(token !== undefined && { token }),
    createdAt,
  }
}
