// What callers pass to a SandboxClient, and how it becomes options of the Islet SDK.
import { type CreateOptions, type FileToWrite, IsletError } from '@islet/sdk'

export type { FileToWrite } from '@islet/sdk'

export interface SandboxResources {
  /** `'256Mi'`, `'1Gi'`. */
  memory?: string
  /** Millicores: `'500m'`, `'1000m'`. */
  cpu?: string
  disk?: string
}

export interface SandboxTimeouts {
  /** The sandbox is removed after this time without use: `'10m'`. */
  idle?: string
  /** Default for every command: `'30s'`. */
  execution?: string
  /** A paused sandbox is removed after this time; `'0s'`: never. */
  paused?: string
}

export interface SandboxCreateOptions {
  runtime?: string
  /** An `id` of `listRuntimes`. */
  runtimeId?: string
  /** Need not be unique. */
  name?: string
  description?: string
  resources?: SandboxResources
  network?: { enabled?: boolean; port?: number }
  projectId?: string
  timeout?: SandboxTimeouts
  /** Debian packages. */
  dependencies?: string[]
  /** npm packages, installed globally. */
  packages?: string[]
  env?: Record<string, string>
  files?: FileToWrite[]
  /** The id or tag of a snapshot, instead of a runtime. */
  snapshot?: string
  metadata?: Record<string, unknown>
  /** `['services:read', 'services:write']`: programs inside get the address and token of the sandbox's store. */
  scopes?: string[]
}

export interface StreamConfig {
  /** `'ignore'`: no URL in the answer. */
  stdout?: string
  stderr?: string
  timestamps?: boolean
}

/** Metadata of the sandbox that are fields here. Names are labels, because they need not be unique here. */
export const NAME = 'agentuity.name'
export const ORG = 'agentuity.org'

const RUNTIME_ID = 'srt_'
const MIN_PORT = 1024
const SCOPES = ['services:read', 'services:write']

export function toCreateOptions(
  options: SandboxCreateOptions,
  orgId: string | undefined,
): Omit<CreateOptions, 'idempotencyKey'> {
  const { runtimeId, name, projectId, timeout, scopes, metadata, network, ...same } = options
  const { snapshot, runtime } = same
  if (snapshot !== undefined && (runtime !== undefined || runtimeId !== undefined))
    throw new IsletError(
      'bad_request',
      'A snapshot has its runtime: give snapshot, or runtime or runtimeId, but not both.',
    )
  if (runtime !== undefined && runtimeId !== undefined)
    throw new IsletError('bad_request', 'Give runtime or runtimeId, but not both.')
  if (network?.port !== undefined && network.port < MIN_PORT)
    throw new IsletError(
      'bad_request',
      `network.port is ${network.port}; it must be from ${MIN_PORT} to 65535.`,
    )
  return {
    ...same,
    ...(runtimeId !== undefined && { runtime: runtimeOf(runtimeId) }),
    ...(network && { network: { ...network, enabled: network.enabled ?? false } }),
    ...(projectId !== undefined && { project: projectId }),
    ...(timeout && { timeout: { ...timeout, ...(timeout.idle !== undefined && { onIdle: 'kill' }) } }),
    ...(isScoped(scopes) && { storeAccess: true }),
    metadata: {
      ...(metadata as CreateOptions['metadata']),
      ...(name !== undefined && { [NAME]: name }),
      ...(orgId !== undefined && { [ORG]: orgId }),
    },
  }
}

function isScoped(scopes: string[] = []): boolean {
  const missing = scopes.length > 0 && SCOPES.some((scope) => !scopes.includes(scope))
  const unknown = scopes.find((scope) => !SCOPES.includes(scope))
  if (missing || unknown !== undefined)
    throw new IsletError('not_supported', `Islet has no credentials for the scopes ${scopes.join(', ')}.`, {
      hint: `Together, ${SCOPES.join(' and ')} give programs inside access to the store of their sandbox. Pass other credentials with env.`,
    })
  return scopes.length > 0
}

/** Refuses streams that only the vendor has. */
export function wantsUrls({ stdout, stderr, timestamps }: StreamConfig = {}): {
  stdout: boolean
  stderr: boolean
} {
  if (timestamps) throw new IsletError('not_supported', 'Islet does not add timestamps to output.')
  for (const id of [stdout, stderr])
    if (id !== undefined && id !== 'ignore')
      throw new IsletError(
        'not_supported',
        `Islet has no stream ${id}: it keeps the output of each execution itself.`,
        {
          hint: 'Leave stream out and fetch stdoutStreamUrl, or pass pipe.',
        },
      )
  return { stdout: stdout === undefined, stderr: stderr === undefined }
}

export function runtimeIdOf(name: string): string {
  return RUNTIME_ID + toHex(new TextEncoder().encode(name))
}

function runtimeOf(id: string): string {
  const hex = id.slice(RUNTIME_ID.length)
  if (!id.startsWith(RUNTIME_ID) || !/^([0-9a-f]{2})+$/.test(hex))
    throw new IsletError('runtime_not_found', `There is no runtime with the id ${id}.`)
  const bytes = hex.match(/../g)!.map((pair) => Number.parseInt(pair, 16))
  return new TextDecoder().decode(new Uint8Array(bytes))
}

function toHex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
