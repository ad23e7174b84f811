import { z } from 'zod'
import { ID_PREFIXES } from '../ids.ts'
import { LIMITS } from '../limits.ts'
import {
  cpuMillis,
  direction,
  env,
  envPatch,
  json,
  keepAwake,
  metadata,
  noNul,
  ONE_PLACE,
  onePlace,
  pageFields,
  portNumber,
  sandboxId,
  sandboxPath,
  sizeBytes,
  timestamp,
  total,
  userName,
} from './common.ts'
import { filesToWrite } from './file.ts'
import { PACKAGES_NEED_RUNTIME, packageFields, packagesNeedRuntime } from './packages.ts'
import { patchRun } from './patch.ts'
import { progressOf } from './progress.ts'
import { timeouts, timeoutsInfo } from './timeout.ts'

export const SANDBOX_STATUSES = ['creating', 'running', 'paused', 'hibernated', 'stopped', 'failed'] as const
export const sandboxStatus = z.enum(SANDBOX_STATUSES)
export type SandboxStatus = z.infer<typeof sandboxStatus>

const MIB = 1024 * 1024

/** The minimum and maximum of each. */
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

const resourcesInput = z.strictObject({
  memory: memory.optional().meta({ description: "Bytes, or like '512Mi'." }),
  cpu: cpu.optional().meta({ description: "Cores, or like '500m'." }),
  disk: disk
    .optional()
    .meta({ description: "Bytes, or like '2Gi'. Enforced if the storage can; see capabilities." }),
  pids: z
    .number()
    .int()
    .min(RESOURCE_BOUNDS.pids[0])
    .max(RESOURCE_BOUNDS.pids[1])
    .optional()
    .meta({ description: 'The maximum number of processes and threads.' }),
})

const label = z
  .string()
  .min(1)
  .max(LIMITS.nameLength)
  .regex(/^[^\p{Cc}]+$/u, 'no control characters')
/** Accepted wherever an id is, also in URLs. */
const sandboxName = label
  .refine(
    (name) => !name.startsWith(`${ID_PREFIXES.sandbox}-`),
    'a name must not begin with sbx-, like an id',
  )
  .refine((name) => name !== '.' && name !== '..', 'a name must not be . or ..')
const description = z.string().max(LIMITS.descriptionLength).refine(noNul, 'no NUL')
export const runtimeName = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/, 'not a runtime name')

const snapshotRef = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'not the id or tag of a snapshot')

export const sandboxFields = {
  runtime: runtimeName
    .optional()
    .meta({ description: 'A name of GET /v1/runtimes, made on first use. Default: base.' }),
  snapshot: snapshotRef.optional().meta({
    description:
      'The id or tag of a snapshot to start from, instead of a runtime. What is not given here is taken from it.',
  }),
  ...packageFields,
  name: sandboxName.optional().meta({
    description: 'Unique among sandboxes that are not stopped. Must not begin with sbx-.',
  }),
  description: description.optional(),
  metadata: metadata.optional(),
  project: label.optional(),
  env: env.optional(),
  files: filesToWrite.optional().meta({
    description: 'Written before the sandbox is given; paths may be relative to the working directory.',
  }),
  resources: resourcesInput.optional(),
  network: z
    .strictObject({
      enabled: z.boolean().optional().meta({ description: 'Default: false, loopback only.' }),
      port: portNumber.nullable().optional().meta({
        description:
          'A port that gets a preview together with the sandbox; `url` in the answer is its URL. Default: null, none.',
      }),
    })
    .optional(),
  user: userName
    .optional()
    .meta({ description: 'The user that runs commands. Default: the user of the image, usually user.' }),
  workdir: sandboxPath.optional().meta({
    description: 'The directory in which commands start; created if missing. Default: that of the image.',
  }),
  timeout: timeouts.optional().meta({ description: 'When the sandbox hibernates or stops by itself.' }),
  keepAwake: keepAwake.optional().meta({ description: 'true: the sandbox is never idle. Default: false.' }),
  storeAccess: z.boolean().optional().meta({
    description:
      'Set ISLET_STORE_URL and ISLET_STORE_TOKEN for programs inside, which give access to the store. Default: false.',
  }),
}
/** Only one of the two may be given. */
export const oneBase = (input: { runtime?: unknown; snapshot?: unknown }): boolean =>
  input.runtime === undefined || input.snapshot === undefined
export const ONE_BASE = 'a snapshot has its runtime already: leave runtime out'
export const createSandbox = z
  .strictObject(sandboxFields)
  .refine(oneBase, ONE_BASE)
  .refine(packagesNeedRuntime, PACKAGES_NEED_RUNTIME)
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
    .meta({ description: 'true: the sandbox is never idle. false: its idle time begins now.' }),
  network: z
    .strictObject({
      enabled: z.boolean().optional().meta({
        description:
          'Turns the network on or off; off ends open connections. Turning it on needs the API key.',
      }),
      port: portNumber.nullable().optional().meta({
        description: 'Gives this port a preview, and removes that of the previous port; null: only removes.',
      }),
    })
    .optional(),
})
export type UpdateSandbox = z.input<typeof updateSandbox>
export type UpdateSandboxParsed = z.output<typeof updateSandbox>

/** For a sandbox made from another: what is not given is taken from there. */
const {
  runtime: _runtime,
  snapshot: _snapshot,
  dependencies: _dependencies,
  packages: _packages,
  pip: _pip,
  ...copyFields
} = sandboxFields
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
  network: z.object({
    enabled: z.boolean(),
    port: z.number().nullable().meta({ description: 'The port that `url` leads to.' }),
  }),
  url: z.string().nullable().meta({ description: 'The preview of `network.port`.' }),
  user: z.string(),
  workdir: z.string(),
  storeAccess: z.boolean(),
  keepAwake,
  timeouts: timeoutsInfo,
  origin: z
    .object({ kind: z.enum(['checkpoint', 'snapshot', 'fork']), id: z.string() })
    .nullable()
    .meta({ description: 'What it was made from: a checkpoint, a snapshot, or (fork) another sandbox.' }),
  terminatesAt: timestamp
    .nullable()
    .meta({ description: 'When a paused sandbox will be stopped, if it has a paused timeout.' }),
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
      'setting: keepAwake, or no idle timeout. command: a client waits for its end. job: a background process, or an overlay that is being copied. service, terminal: with keepAwake. session: a WebSocket client. preview: an open connection. call: another request.',
  }),
  id: z.string().optional().meta({
    description:
      'The id of the process, terminal or watcher, the name of the service, or the port of the preview.',
  }),
})
export type AwakeReason = z.infer<typeof awakeReason>
export const awake = z.object({
  reasons: z
    .array(awakeReason)
    .max(LIMITS.awakeReasons)
    .meta({ description: 'Why the sandbox is not idle now; only the first reasons if there are many.' }),
  sleepsAt: timestamp.nullable().meta({
    description: 'When the sandbox does `onIdle` if it is not used before; null while there are reasons.',
  }),
})
export type Awake = z.infer<typeof awake>
/** A sandbox as it is now. Answers to changes do not have `awake`. */
export const sandboxDetail = sandbox.extend({
  awake: awake.nullable().meta({ description: 'Null unless the sandbox runs.' }),
})
export type SandboxDetail = z.infer<typeof sandboxDetail>

/** A new sandbox has a token that gives access to it only. */
export const createdSandbox = sandbox.extend({
  token: z.string(),
  tokenExpiresAt: timestamp,
  patches: z
    .array(patchRun)
    .optional()
    .meta({ description: 'The results of the patches, if it was made from a checkpoint that has some.' }),
})
export type CreatedSandbox = z.infer<typeof createdSandbox>

export const createProgress = progressOf('sandbox', createdSandbox)
export type CreateProgress = z.infer<typeof createProgress>

export const listSandboxes = z
  .strictObject({
    status: z
      .enum([...SANDBOX_STATUSES, 'all'])
      .optional()
      .meta({ description: 'Default: all except stopped.' }),
    name: z.string().optional(),
    project: z.string().optional(),
    metadata: z
      .union([z.string(), z.array(z.string())])
      .optional()
      .meta({ description: 'key=value; may be repeated, all must match.' }),
    ...pageFields,
    sort: z
      .enum(['created', 'updated', 'name', 'status'])
      .optional()
      .meta({ description: 'Default: created.' }),
    direction: direction.meta({ description: 'Default: desc for times, asc for name and status.' }),
  })
  .refine(onePlace, ONE_PLACE)
export type ListSandboxes = z.input<typeof listSandboxes>
export type ListSandboxesParsed = z.output<typeof listSandboxes>

export const sandboxPage = z.object({
  sandboxes: z.array(sandboxDetail),
  total,
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
/** A sandbox that was suspended and runs again. */
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
      .meta({ description: 'How many forks. Default: 1.' }),
  })
  .refine(({ name, count }) => name === undefined || count === undefined || count === 1, {
    message: 'a name can be given for one fork only: leave name or count out',
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
  frozenMs: z.number().meta({ description: 'How long the source was frozen.' }),
  memory: z.boolean().meta({ description: 'Whether the processes of the source continue in the forks.' }),
})
export type Forks = z.infer<typeof forks>
