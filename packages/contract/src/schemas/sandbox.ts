import { z } from 'zod'
import { ID_PREFIXES } from '../ids.ts'
import { LIMITS } from '../limits.ts'
import {
  checkBase64,
  cpuMillis,
  decodedBytes,
  env,
  envPatch,
  fileMode,
  json,
  keepAwake,
  metadata,
  noNul,
  queryInteger,
  sandboxId,
  sandboxPath,
  sizeBytes,
  timestamp,
  userName,
} from './common.ts'
import { patchRun } from './patch.ts'
import { timeouts, timeoutsInfo } from './timeout.ts'

export const SANDBOX_STATUSES = ['creating', 'running', 'paused', 'hibernated', 'stopped', 'failed'] as const
export const sandboxStatus = z.enum(SANDBOX_STATUSES)
export type SandboxStatus = z.infer<typeof sandboxStatus>

const MIB = 1024 * 1024

/** The least and the most of each. */
export const RESOURCE_BOUNDS = {
  memoryBytes: [16 * MIB, 2 ** 40],
  cpuMillis: [10, 1_000_000],
  diskBytes: [16 * MIB, 2 ** 50],
  pids: [16, 100_000],
} as const

const isWithin = (value: number, [least, most]: readonly [number, number]) => value >= least && value <= most
const memory = sizeBytes.refine(
  (value) => isWithin(value, RESOURCE_BOUNDS.memoryBytes),
  'memory is between 16Mi and 1Ti',
)
const cpu = cpuMillis.refine(
  (value) => isWithin(value, RESOURCE_BOUNDS.cpuMillis),
  'cpu is between 10m and 1000 cores',
)
const disk = sizeBytes.refine(
  (value) => isWithin(value, RESOURCE_BOUNDS.diskBytes),
  'disk is between 16Mi and 1Pi',
)

export const resourcesInput = z.strictObject({
  memory: memory.optional().meta({ description: "Bytes, or like '512Mi'." }),
  cpu: cpu.optional().meta({ description: "Cores, or like '500m'." }),
  disk: disk
    .optional()
    .meta({ description: "Bytes, or like '2Gi'. Enforced where the storage can; see capabilities." }),
  pids: z
    .number()
    .int()
    .min(RESOURCE_BOUNDS.pids[0])
    .max(RESOURCE_BOUNDS.pids[1])
    .optional()
    .meta({ description: 'The most processes and threads at once.' }),
})

export const fileToWrite = z
  .strictObject({
    path: sandboxPath,
    content: z.string(),
    encoding: z.enum(['utf8', 'base64']).default('utf8'),
    mode: fileMode.optional(),
    owner: userName.optional(),
  })
  .superRefine(checkBase64('content', 'encoding'))
export type FileToWrite = z.input<typeof fileToWrite>

const label = z
  .string()
  .min(1)
  .max(LIMITS.nameLength)
  .regex(/^[^\p{Cc}]+$/u, 'no control characters')
/** Stands in the place of an id wherever one is given, also in addresses. */
const sandboxName = label
  .refine((name) => !name.startsWith(`${ID_PREFIXES.sandbox}-`), 'a name does not look like an id')
  .refine((name) => name !== '.' && name !== '..', 'a name is not . or ..')
const description = z.string().max(LIMITS.descriptionLength).refine(noNul, 'no NUL')
export const runtimeName = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/, 'not a runtime name')

const snapshotRef = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'not the id or tag of a snapshot')

export const sandboxFields = {
  runtime: runtimeName.optional().meta({ description: 'A name of GET /v1/runtimes. Default: base.' }),
  snapshot: snapshotRef.optional().meta({
    description:
      'The id or tag of a snapshot to begin with, in place of a runtime. What is not given here is as it was there.',
  }),
  name: sandboxName.optional().meta({
    description: 'Of one sandbox at a time; it is free again when that is stopped. Does not begin with sbx-.',
  }),
  description: description.optional(),
  metadata: metadata.optional(),
  project: label.optional(),
  env: env.optional(),
  files: z
    .array(fileToWrite)
    .max(LIMITS.createFiles)
    .refine(
      (files) =>
        files.reduce((sum, { content, encoding }) => sum + decodedBytes(content, encoding), 0) <=
        LIMITS.createFilesBytes,
      `files hold at most ${LIMITS.createFilesBytes} bytes together; send more with PUT files`,
    )
    .optional(),
  resources: resourcesInput.optional(),
  network: z
    .strictObject({ enabled: z.boolean() })
    .optional()
    .meta({ description: 'Default: off, loopback only.' }),
  user: userName
    .optional()
    .meta({ description: 'Who commands run as. Default: that of the image, usually user.' }),
  workdir: sandboxPath
    .optional()
    .meta({ description: 'Where commands start; made if missing. Default: that of the image.' }),
  timeout: timeouts.optional().meta({ description: 'What it does by itself after a while.' }),
  keepAwake: keepAwake.optional().meta({ description: 'true: it is never idle. Default: false.' }),
  storeAccess: z.boolean().optional().meta({
    description:
      'Give programs inside ISLET_STORE_URL and ISLET_STORE_TOKEN, by which they reach the store. Default: false.',
  }),
}
/** Has a meaning only without the other. */
export const oneBase = (input: { runtime?: unknown; snapshot?: unknown }): boolean =>
  input.runtime === undefined || input.snapshot === undefined
export const ONE_BASE = 'a snapshot has its runtime already: leave runtime out'
export const createSandbox = z.strictObject(sandboxFields).refine(oneBase, ONE_BASE)
export type CreateSandbox = z.input<typeof createSandbox>
export type CreateSandboxParsed = z.output<typeof createSandbox>

export const updateSandbox = z.strictObject({
  name: sandboxName.nullable().optional().meta({ description: 'With the API key only.' }),
  description: description.nullable().optional(),
  metadata: metadata.optional().meta({ description: 'Replaces the metadata.' }),
  project: label.nullable().optional().meta({ description: 'With the API key only.' }),
  env: envPatch
    .optional()
    .meta({ description: 'Merged into the environment of later commands; null removes a variable.' }),
  resources: resourcesInput.optional().meta({ description: 'With the API key only.' }),
  keepAwake: keepAwake
    .optional()
    .meta({ description: 'true: it is never idle. false: its idle time begins now.' }),
  network: z.strictObject({ enabled: z.boolean() }).optional().meta({
    description: 'Turns the network on or off, and ends connections with it. On: with the API key only.',
  }),
})
export type UpdateSandbox = z.input<typeof updateSandbox>
export type UpdateSandboxParsed = z.output<typeof updateSandbox>

/** For a sandbox that begins as another was: what is not given is as it was there. */
const { runtime: _runtime, snapshot: _snapshot, ...copyFields } = sandboxFields
export const copySandbox = z.strictObject(copyFields)
export type CopySandbox = z.input<typeof copySandbox>
export type CopySandboxParsed = z.output<typeof copySandbox>

export const sandbox = z.object({
  id: sandboxId,
  name: z.string().nullable(),
  description: z.string().nullable(),
  status: sandboxStatus,
  /** Why it failed or stopped. */
  reason: z.string().nullable(),
  runtime: z.string(),
  image: z.string().nullable(),
  engine: z.string(),
  isolation: z.string(),
  metadata: z.record(z.string(), json),
  project: z.string().nullable(),
  env: z.record(z.string(), z.string()),
  resources: z.object({
    memoryBytes: z.number(),
    cpuMillis: z.number(),
    diskBytes: z.number(),
    pids: z.number(),
  }),
  network: z.object({ enabled: z.boolean() }),
  user: z.string(),
  workdir: z.string(),
  storeAccess: z.boolean(),
  keepAwake,
  timeouts: timeoutsInfo,
  origin: z
    .object({ kind: z.enum(['checkpoint', 'snapshot', 'fork']), id: z.string() })
    .nullable()
    .meta({ description: 'What it was made from: a checkpoint, a snapshot, or (fork) another sandbox.' }),
  terminatesAt: timestamp.nullable().meta({ description: 'Paused with a timeout: when it will be stopped.' }),
  createdAt: timestamp,
  updatedAt: timestamp,
  stoppedAt: timestamp.nullable(),
})
export type Sandbox = z.infer<typeof sandbox>

export const AWAKE_KINDS = [
  'setting',
  'command',
  'job',
  'service',
  'terminal',
  'session',
  'preview',
  'call',
] as const
export const awakeReason = z.object({
  kind: z.enum(AWAKE_KINDS).meta({
    description:
      'setting: keepAwake, or no idle timeout. command: one that somebody waits for. job: one in the background, or a template that is being copied. service, terminal: with keepAwake. session: a WebSocket client. preview: an open connection. call: another request.',
  }),
  id: z
    .string()
    .optional()
    .meta({ description: 'Of the process, service, terminal or watcher; of a preview its port.' }),
})
export type AwakeReason = z.infer<typeof awakeReason>
export const awake = z.object({
  reasons: z
    .array(awakeReason)
    .max(LIMITS.awakeReasons)
    .meta({ description: 'Why it is not idle now; the first of them when there are many.' }),
  sleepsAt: timestamp
    .nullable()
    .meta({ description: 'When `onIdle` is done if nobody uses it until then; null: there are reasons.' }),
})
export type Awake = z.infer<typeof awake>
/** A sandbox as it is now, with what a change of it does not answer with. */
export const sandboxDetail = sandbox.extend({
  awake: awake.nullable().meta({ description: 'Null unless it runs.' }),
})
export type SandboxDetail = z.infer<typeof sandboxDetail>

/** A new sandbox comes with a token that reaches it and nothing else. */
export const createdSandbox = sandbox.extend({
  token: z.string(),
  tokenExpiresAt: timestamp,
  patches: z
    .array(patchRun)
    .optional()
    .meta({ description: 'Made from a checkpoint with patches: what became of them.' }),
})
export type CreatedSandbox = z.infer<typeof createdSandbox>

export const listSandboxes = z.strictObject({
  status: z
    .enum([...SANDBOX_STATUSES, 'all'])
    .optional()
    .meta({ description: 'Default: all but stopped ones.' }),
  name: z.string().optional(),
  project: z.string().optional(),
  metadata: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .meta({ description: 'key=value; may be given more than once, all must match.' }),
  limit: queryInteger(1, LIMITS.listPage).optional().meta({ description: 'Default: 100.' }),
  cursor: z.string().max(256).optional(),
})
export type ListSandboxes = z.input<typeof listSandboxes>
export type ListSandboxesParsed = z.output<typeof listSandboxes>

export const sandboxPage = z.object({
  sandboxes: z.array(sandboxDetail),
  total: z.number(),
  cursor: z.string().optional(),
})
export type SandboxPage = z.infer<typeof sandboxPage>

export const usage = z.object({
  memoryBytes: z.number(),
  memoryPeakBytes: z.number(),
  cpuUsec: z.number(),
  pids: z.number(),
  oomKills: z.number(),
  diskBytes: z.number(),
})
export type SandboxUsage = z.infer<typeof usage>

export const wakeSandbox = z.strictObject({
  timeout: timeouts.shape.idle.meta({ description: 'A new idle timeout.' }),
})
/** A sandbox that stood still and runs again. */
export const wokenSandbox = sandbox.extend({ patches: z.array(patchRun).optional() })
export type WokenSandbox = z.infer<typeof wokenSandbox>

export const forkSandbox = z
  .strictObject({
    ...copyFields,
    count: z
      .number()
      .int()
      .min(1)
      .max(LIMITS.forks)
      .optional()
      .meta({ description: 'How many. Default: 1.' }),
  })
  .refine(({ name, count }) => name === undefined || count === undefined || count === 1, {
    message: 'a name is for one fork: leave it out, or make one',
    path: ['name'],
  })
export type ForkSandbox = z.input<typeof forkSandbox>
export type ForkSandboxParsed = z.output<typeof forkSandbox>
export const forks = z.object({
  forks: z.array(
    z.union([
      z.object({ ok: z.literal(true), sandbox: createdSandbox }),
      z.object({
        ok: z.literal(false),
        error: z.object({ code: z.string(), message: z.string(), hint: z.string().optional() }),
      }),
    ]),
  ),
  frozenMs: z.number().meta({ description: 'How long the source stood still.' }),
  memory: z.boolean().meta({ description: 'Whether what ran in the source goes on in the forks.' }),
})
export type Forks = z.infer<typeof forks>
