import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import {
  durationMs,
  env,
  keepAwake,
  portNumber,
  processId,
  queryBoolean,
  queryInteger,
  sandboxPath,
  timestamp,
  userName,
} from './common.ts'
import { keepOutput, shellText } from './process.ts'

export const SERVICE_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const serviceName = z
  .string()
  .regex(SERVICE_NAME, 'a name has lower-case letters, digits and dashes, at most 63')

const pause = (min: number) =>
  durationMs.refine((value) => value >= min && value <= LIMITS.timeoutMs, `it is between ${min} ms and 24h`)

export const healthCheck = z.strictObject({
  path: z
    .string()
    .max(2048)
    .regex(/^\/[\x21-\x7e]*$/, 'a path begins with / and has no spaces')
    .meta({ description: 'Requested with GET; a status below 400 is healthy.' }),
  interval: pause(50).optional().meta({ description: 'Default: 5s.' }),
  timeout: pause(50).optional().meta({ description: 'Timeout of one request. Default: 3s.' }),
  delay: pause(0).optional().meta({ description: 'Delay before the first request. Default: none.' }),
})
export type HealthCheckParsed = z.output<typeof healthCheck>

const RESTART_POLICIES = ['never', 'on-failure', 'always'] as const
export const startService = z.strictObject({
  name: serviceName,
  start: shellText.meta({ description: 'The command, run with sh -c.' }),
  install: shellText.optional().meta({ description: 'A command that must succeed before the first start.' }),
  path: sandboxPath
    .optional()
    .meta({ description: 'The directory of both commands. Default: the working directory.' }),
  envFile: sandboxPath
    .optional()
    .meta({ description: 'A .env file, relative to path; read at every start.' }),
  environment: env.optional().meta({ description: 'Overrides the variables of the env file.' }),
  user: userName.optional(),
  port: portNumber.optional().meta({
    description:
      'Passed to the command as PORT. If it is taken, the next free port is used, unless strictPort.',
  }),
  strictPort: z.boolean().optional().meta({ description: 'Fail when the port is taken. Default: false.' }),
  autostart: z
    .boolean()
    .optional()
    .meta({ description: 'Start again when the sandbox starts again. Default: true.' }),
  restartPolicy: z.enum(RESTART_POLICIES).optional().meta({ description: 'Default: never.' }),
  maxRestarts: z
    .number()
    .int()
    .min(0)
    .max(1_000_000)
    .optional()
    .meta({ description: '0: unlimited. Default: 0.' }),
  restartDelay: pause(0)
    .optional()
    .meta({ description: 'Delay before a restart. Default: 1s, at least 20 ms.' }),
  stopTimeout: pause(0).optional().meta({ description: 'Time between SIGTERM and SIGKILL. Default: 10s.' }),
  healthCheck: healthCheck.optional(),
  keepOutput: keepOutput.optional(),
  keepAwake: keepAwake
    .optional()
    .meta({ description: 'The sandbox is not idle while the service is to run. Default: false.' }),
})
export type StartService = z.input<typeof startService>
export type StartServiceParsed = z.output<typeof startService>

export const SERVICE_STATUSES = ['installing', 'starting', 'running', 'ready', 'failed', 'stopped'] as const
export const serviceInfo = z.object({
  name: serviceName,
  sandboxId: z.string(),
  start: z.string(),
  install: z.string().optional(),
  path: z.string().meta({ description: 'Absolute.' }),
  originalPath: z.string().optional().meta({ description: 'The path as it was given.' }),
  envFile: z.string().optional(),
  environment: z.record(z.string(), z.string()),
  port: z.number().optional().meta({ description: 'The port on which it listens or will listen.' }),
  url: z.string().optional().meta({ description: 'Its preview URL, once it is ready.' }),
  status: z.enum(SERVICE_STATUSES).meta({
    description: 'running: the command runs. ready: its port listens and its health check passes.',
  }),
  reason: z.string().optional().meta({ description: 'Why it failed.' }),
  pid: z.number().optional(),
  processId: processId.optional().meta({ description: 'The running command, or the last one.' }),
  autostart: z.boolean(),
  keepAwake: keepAwake.meta({ description: 'The service keeps the sandbox awake.' }),
  restartPolicy: z.enum(RESTART_POLICIES),
  maxRestarts: z.number(),
  restartCount: z.number(),
  healthy: z.boolean().optional(),
  healthStatus: z.string().optional().meta({ description: 'The result of the last health check.' }),
  createdAt: timestamp,
  updatedAt: timestamp,
})
export type ServiceInfo = z.infer<typeof serviceInfo>
export const serviceList = z.object({ services: z.array(serviceInfo) })

export const getService = z.strictObject({
  wait: queryInteger(0, 60_000).optional().meta({
    description:
      'Wait up to this many milliseconds until the service has the status, or has failed or stopped.',
  }),
  status: z.enum(SERVICE_STATUSES).optional().meta({
    description: 'The status to wait for; ready also counts as running. Default: ready.',
  }),
})

export const serviceLogsQuery = z.strictObject({
  install: queryBoolean
    .optional()
    .meta({ description: 'The output of the install command. Default: false.' }),
})
export const serviceLogs = z.object({
  processId: processId.nullable(),
  stdout: z.string(),
  stderr: z.string(),
  truncated: z.boolean(),
  droppedBytes: z.number().meta({ description: 'Bytes that were printed before the given output.' }),
})
export type ServiceLogs = z.infer<typeof serviceLogs>
